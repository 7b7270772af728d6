"use strict";
(() => {
  const table = document.getElementById("tasks");
  if (!table) return;
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const tools = document.getElementById("tools"), said = document.getElementById("shown");
  const kind = document.getElementById("kind"), find = document.getElementById("find");
  const texts = rows.map((row) => row.textContent.toLowerCase());

  function show() {
    const words = find.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, place) => {
      const fits = !kind.value || row.dataset.outcome === kind.value || (kind.value === "open" && "open" in row.dataset);
      row.hidden = !(fits && texts[place].includes(words));
      shown += !row.hidden;
    });
    said.textContent = said.dataset.words.replace("#", shown);
  }

  function sort(place) {
    const head = heads[place], down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.cells[place].dataset.value;
    const compare = head.dataset.sort === "number"
      ? (one, other) => Number(value(one)) - Number(value(other))
      : (one, other) => value(one).localeCompare(value(other), undefined, { numeric: true });
    body.append(...[...rows].sort((one, other) => (down ? -1 : 1) * compare(one, other)));
  }

  heads.forEach((head, place) => {
    if (!head.dataset.sort) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(place));
    head.replaceChildren(button);
  });
  kind.addEventListener("change", show);
  find.addEventListener("input", show);
  tools.hidden = false;
  show();
})();
