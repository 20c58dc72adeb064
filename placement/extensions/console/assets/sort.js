// Tables whose rows are sorted by a click on the head of a column; without scripts they keep the order of the service.

/** Return what a row is sorted by: a number in a column of numbers, else a date, else the text. */
function value(row, column, isNumber) {
  const cell = row.cells[column];
  const text = cell.textContent.trim();
  return isNumber ? Number.parseFloat(text.replaceAll(/\s/g, "")) || 0 : (cell.querySelector("time")?.dateTime ?? text);
}

const compare = (one, other) => (typeof one === "number" ? one - other : one.localeCompare(other));

export function start(table) {
  const heads = [...table.tHead.rows[0].cells];
  for (const [column, head] of heads.entries()) {
    if (!head.textContent.trim() || head.dataset.unsorted !== undefined) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      // Of numbers, the greatest ones are looked for first.
      const isNumber = head.classList.contains("number");
      const first = isNumber ? "descending" : "ascending";
      const now = head.getAttribute("aria-sort");
      const next = now ? (now === "ascending" ? "descending" : "ascending") : first;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", next);
      const body = table.tBodies[0];
      const sign = next === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [value(row, column, isNumber), row]);
      // What has no value, such as an end, comes last in both orders.
      rows.sort(([a], [b]) => (a === "") - (b === "") || sign * compare(a, b));
      body.append(...rows.map(([, row]) => row));
    });
  }
}
