/* Sorts tables of pages by the column whose head is pressed: once, the other way round, and as they
   were. Without it they can be read as they are. It has no character that XML would want escaped. */
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const words = new Intl.Collator("en", {numeric: true});
  const number = /^[-+]?[\d,]*\.?\d+( ?(%|×|x|GB\/s))?( ~)?$/;
  const read = (row, column) => {
    const cell = row.cells[column];
    const text = cell ? cell.textContent.trim() : "";
    return {text, none: /^[-–]?$/.test(text), number: number.test(text) ? parseFloat(text.replace(/,/g, "")) : NaN};
  };
  const compare = (a, b) => {
    const apart = a.number - b.number;
    return isNaN(apart) ? words.compare(a.text, b.text) : apart;
  };
  const sort = (table, heads, rows, column, order) => {
    const keyed = rows.map((row) => ({row, key: read(row, column)}));
    if (order !== "none")
      keyed.sort((a, b) => a.key.none || b.key.none ? a.key.none - b.key.none
                           : order === "ascending" ? compare(a.key, b.key) : compare(b.key, a.key));
    for (const one of keyed) rows[0].parentNode.append(one.row);
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === column ? order : "none"));
  };
  for (const table of document.querySelectorAll("table.rows")) {
    const [first, ...rows] = table.rows;
    const heads = [...first.cells];
    if (2 > rows.length || heads.some((head) => head.scope !== "col")) continue;
    heads.forEach((head, column) => {
      const orders = head.className === "n" ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
      const button = document.createElement("button");
      button.append(...head.childNodes);
      button.title = "Sort by this";
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = (orders.indexOf(head.getAttribute("aria-sort")) + 1) % 3;
        sort(table, heads, rows, column, orders[next]);
      });
    });
  }
});
