// Sorts the table by a column; without JavaScript it stays sorted by time.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    header.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = header.getAttribute("aria-sort") === "ascending";
      for (const other of headers) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const rows = [...body.rows];
      rows.sort((first, second) => compare(key(first, column), key(second, column), descending));
      body.append(...rows);
    });
  });
}
function key(row, column) {
  const cell = row.cells[column];
  const value = cell && cell.dataset.key;
  if (value === undefined) return null;
  return value !== "" && !isNaN(value) ? Number(value) : value;
}
function compare(first, second, descending) {
  if (first === null || second === null) return (first === null) - (second === null);
  const order = typeof first === "number" && typeof second === "number"
    ? first - second
    : String(first).localeCompare(String(second), undefined, {numeric: true});
  return descending ? -order : order;
}
