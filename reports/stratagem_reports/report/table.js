// Sorts a table by a column and filters its rows (sortable_table.py); without JavaScript its rows
// stay in their order.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const headers = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator(undefined, {numeric: true});
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    header.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = header.getAttribute("aria-sort") === "ascending";
      for (const other of headers) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const keyed = [...body.rows].map((row) => [key(row, column), row]);
      keyed.sort((first, second) => compare(first[0], second[0], descending, collator));
      body.append(...keyed.map(([, row]) => row));
      announce(`Sorted by ${button.textContent}, ${descending ? "descending" : "ascending"}`);
    });
  });
  const form = table.closest(".sortable").querySelector("form.filters");
  if (!form) continue;
  form.hidden = false;
  const rows = [...body.rows].map((row) => [row, row.textContent.toLowerCase()]);
  const status = form.querySelector("[role=status]");
  const apply = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of rows) {
      const fits = words.every((word) => text.includes(word)) && matches(row.dataset, wanted);
      row.hidden = !fits;
      shown += fits;
    }
    const all = rows.length.toLocaleString("en");
    status.textContent = shown === rows.length
      ? `${all} rows`
      : `${shown.toLocaleString("en")} of ${all} rows shown`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}
// Every fact of a row is a list, one value a line; the text was looked at before.
function matches(facts, wanted) {
  return Object.entries(wanted).every(([name, value]) =>
    name === "text" || value === "" || facts[name].split("\n").includes(value));
}
function key(row, column) {
  const cell = row.cells[column];
  const value = column === 0 ? cell.textContent : cell?.dataset.key;
  if (value === undefined) return null;
  return value !== "" && !isNaN(value) ? Number(value) : value;
}
function compare(first, second, descending, collator) {
  if (first === null || second === null) return (first === null) - (second === null);
  const order = typeof first === "number" && typeof second === "number"
    ? first - second
    : collator.compare(String(first), String(second));
  return descending ? -order : order;
}
function announce(words) {
  document.getElementById("announcement").textContent = words;
}
