// Sorts table rows by a click on a column header; without scripts the rows keep the order of the service.

/** Return the sort key of a row: a number in a numeric column, else a date, else the text. */
function value(row, column, isNumber) {
  const cell = row.cells[column];
  const text = cell.textContent.trim();
  return isNumber ? Number.parseFloat(text.replaceAll(/\s/g, "")) || 0 : (cell.querySelector("time")?.dateTime ?? text);
}

const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));

export function start(table) {
  const heads = [...table.tHead.rows[0].cells];
  for (const [column, head] of heads.entries()) {
    if (!head.textContent.trim() || head.dataset.unsorted !== undefined) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      // Numbers are sorted largest first.
      const isNumber = head.classList.contains("number");
      const first = isNumber ? "descending" : "ascending";
      const current = head.getAttribute("aria-sort");
      const next = current ? (current === "ascending" ? "descending" : "ascending") : first;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", next);
      const body = table.tBodies[0];
      const sign = next === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [value(row, column, isNumber), row]);
      // Empty values, such as a missing expiry, come last in both orders.
      rows.sort(([a], [b]) => (a === "") - (b === "") || sign * compare(a, b));
      body.append(...rows.map(([, row]) => row));
    });
  }
}
