// The desktop's page: noVNC on one socket.
import RFB from "./core/rfb.js";

const address = new URL("socket", location.href);
address.protocol = "ws:";
const screen = new RFB(document.getElementById("screen"), address.href);
screen.scaleViewport = true;
screen.addEventListener("connect", () => {
  document.body.dataset.connected = "yes";
  screen.focus();
});
screen.addEventListener("disconnect", () => {
  document.getElementById("over").hidden = false;
});
