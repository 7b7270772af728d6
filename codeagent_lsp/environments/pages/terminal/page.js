// The terminal's page: xterm.js and one socket, which speaks as terminado does.
"use strict";
(() => {
  const terminal = new Terminal({ cursorBlink: true, fontSize: 15, scrollback: 5000 });
  const fit = new FitAddon.FitAddon();
  terminal.loadAddon(fit);
  terminal.open(document.getElementById("screen"));

  const address = new URL("socket", location.href);
  address.protocol = "ws:";
  const socket = new WebSocket(address);
  const send = (...message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
  const refit = () => {
    fit.fit();
    send("set_size", terminal.rows, terminal.cols);
  };

  terminal.onData((data) => send("stdin", data));
  socket.onopen = () => {
    refit();
    terminal.focus();
    document.body.dataset.connected = "yes";
  };
  socket.onmessage = (event) => {
    const [kind, data] = JSON.parse(event.data);
    if (kind === "stdout") terminal.write(data);
  };
  socket.onclose = () => {
    document.getElementById("over").hidden = false;
  };
  window.addEventListener("resize", refit);
})();
