// Draws each chart when it comes near the screen. Until then, without JavaScript, and in print its
// picture stands in its place. Colours follow the page's style by themselves.
const told = document.createElement("div");
told.className = "told";
told.hidden = true;
document.body.append(told);

async function draw(figure) {
  const specification = JSON.parse(figure.querySelector("script").textContent);
  const plot = figure.querySelector(".plot");
  figure.classList.add("drawn");
  fit(specification, plot.clientWidth);
  plot.style.minHeight = `${specification.height}px`;
  const place = plot.appendChild(document.createElement("div"));
  await vegaEmbed(place, specification, {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true,
    tooltip: (_, event, item, words) => tell(words, event.clientX, event.clientY),
  });
  place.ariaHidden = "true";  // the plot has the words
  plot.style.minHeight = "";
  byKeyboard(plot);
}
// A chart that needs more room is drawn in its narrow form, which may be higher.
function fit(specification, width) {
  const {room, height} = specification.usermeta ?? {};
  if (!(width < room)) return;
  specification.params[0].value = true;
  specification.height = height ?? specification.height;
}
// Shows what a mark says of itself, beside a point of the window.
function tell(words, x, y) {
  told.hidden = !words;
  if (!words) return;
  const [first, ...others] = String(words).split("\n");
  const name = document.createElement("b");
  name.textContent = first;
  told.replaceChildren(name, ...others.flatMap((line) => [document.createElement("br"), line]));
  const {width, height} = told.getBoundingClientRect();
  told.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  told.style.top = `${y + 14 + height > innerHeight ? y - height - 10 : y + 14}px`;
}
// Steps through the marks that have words, as they come in the specification.
function byKeyboard(plot) {
  let at = -1;
  const leave = () => {
    plot.querySelector(".at")?.classList.remove("at");
    tell("");
  };
  plot.addEventListener("keydown", (event) => {
    const marks = [...plot.querySelectorAll("svg path, svg line")]
      .filter((mark) => mark.__data__?.tooltip);
    const next = {
      ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1,
      Home: 0, End: marks.length - 1,
    }[event.key];
    if (event.key === "Escape") leave();
    if (next === undefined || marks.length === 0) return;
    event.preventDefault();
    at = Math.min(Math.max(next, 0), marks.length - 1);
    leave();
    const mark = marks[at], box = mark.getBoundingClientRect();
    mark.classList.add("at");
    tell(mark.__data__.tooltip, box.x + box.width / 2, box.y + box.height / 2);
    announce(mark.__data__.tooltip.replaceAll("\n", ", "));
  });
  plot.addEventListener("blur", leave);
}
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watcher.unobserve(entry.target);
    draw(entry.target).catch((error) => {
      entry.target.classList.remove("drawn");
      console.error(error);
    });
  }
}, {rootMargin: "600px"});
for (const figure of document.querySelectorAll("figure[data-chart]")) watcher.observe(figure);
