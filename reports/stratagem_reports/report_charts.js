// Draws each chart when it comes near the screen. Until then, without JavaScript, and in print the
// static picture stands in its place.
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)");
const narrow = 560;
const roomOfName = 110;
// Named one by one: the library's own choice would offer to upload the chart.
const buttons = [["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]];
let library = null;

async function unpack() {
  const holder = document.getElementById("plotly");
  const packed = Uint8Array.from(atob(holder.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
  holder.remove();
  return window.Plotly;
}
async function draw(figure) {
  library ??= unpack();
  const Plotly = await library;
  const data = JSON.parse(figure.querySelector("script").textContent);
  const plot = figure.querySelector(".plot");
  const show = () => {
    const chosen = structuredClone(data.figure);
    if (dark.matches) for (const [path, value] of data.dark) put(chosen, path, value);
    fit(chosen.layout, plot.clientWidth);
    return Plotly.react(plot, chosen.data, chosen.layout, {
      responsive: true,
      displaylogo: false,
      modeBarButtons: buttons,
    });
  };
  plot.style.minHeight = `${data.figure.layout.height}px`;
  figure.classList.add("drawn");
  await show();
  plot.style.minHeight = "";
  dark.addEventListener("change", show);
  byKeyboard(Plotly, plot);
}
function put(holder, path, value) {
  for (const step of path.slice(0, -1)) holder = holder[step];
  holder[path.at(-1)] = value;
}
function fit(layout, width) {
  if (touch.matches) layout.dragmode = false;
  const names = layout.xaxis.ticktext;
  if (layout.meta?.stacked_names && width < roomOfName * names.length) {
    layout.xaxis.ticktext = names.map((name) => name.replaceAll(" ", "<br>"));
  }
  if (width >= narrow) return;
  layout.font.size = 10;
  layout.legend.font.size = 10;
  layout.margin.l = layout.margin.r = 8;
  if (layout.xaxis.range) layout.xaxis.range[1] *= layout.meta?.room_at_right ?? 1;
  for (const note of layout.annotations ?? []) {
    note.font.size = 9;
    if (layout.meta?.first_lines) note.text = note.text.split("<br>")[0];
  }
}
function byKeyboard(Plotly, plot) {
  let at = -1;
  plot.addEventListener("keydown", (event) => {
    const points = order(plot.data);
    const next = {
      ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1,
      Home: 0, End: points.length - 1,
    }[event.key];
    if (event.key === "Escape") Plotly.Fx.unhover(plot);
    if (next === undefined || points.length === 0) return;
    event.preventDefault();
    at = Math.min(Math.max(next, 0), points.length - 1);
    const {curveNumber, pointNumber, text} = points[at];
    Plotly.Fx.hover(plot, [{curveNumber, pointNumber}]);
    announce(plain(text));
  });
  plot.addEventListener("blur", () => Plotly.Fx.unhover(plot));
}
// What can be pointed at: as the traces come, or row by row and by time where boxes lie in rows.
function order(traces) {
  const points = [];
  traces.forEach((trace, curveNumber) => {
    if (trace.hoverinfo !== "text" || trace.visible === "legendonly") return;
    trace.hovertext.forEach((text, pointNumber) => points.push({
      curveNumber, pointNumber, text,
      row: trace.base ? Math.floor(trace.y[pointNumber]) : 0,
      start: trace.base ? trace.base[pointNumber] : 0,
    }));
  });
  return points.sort((first, second) => first.row - second.row || first.start - second.start);
}
function plain(markup) {
  const page = new DOMParser().parseFromString(markup.replaceAll("<br>", ", "), "text/html");
  return page.body.textContent;
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
