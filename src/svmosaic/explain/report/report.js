"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const numbers = data.task === "numbers";
const state = { row: null, values: null, account: null, output: null, region: null, all: false };
const byRow = new Map(data.rows.numbers.map((number, i) => [number, i]));

// ---- elements: text is only ever set as text, so that no name can become markup -------------------------------------
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
function show(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2).replaceAll("-", "−");
  return String(Number(value.toPrecision(4))).replace("-", "−");
}
const signed = (value) => (value > 0 ? "+" : "") + show(value);
const percent = (share) => (share === null || share === undefined ? "–" : (100 * share).toFixed(1) + " %");
const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
const plural = (n, word) => n.toLocaleString("en") + " " + word + (n === 1 ? "" : word.endsWith("s") ? "es" : "s");
const color = (k) => data.region_colors[k % data.region_colors.length];
const classColor = (c) => data.palette[Math.min(c, data.palette.length - 1)];
const entry = (shade, text) => make("li", {}, make("span", { class: "swatch", style: `background:${shade}` }), text);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const unit = numbers ? data.label : data.votes ? "the margin of a row's region" : "the score";
function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) => make("option", { value }, text)));
  if (chosen !== undefined) select.value = chosen;
}
/** Days since 1970-01-01 as a date. */
const dateOf = (days) => new Date(days * 86400000).toISOString().slice(0, days % 1 ? 16 : 10).replace("T", " ");
const shownValue = (value, column) => (value === null ? "(missing)" : typeof value !== "number" ? value : column.date ? dateOf(value) : show(value));

// ---- charts --------------------------------------------------------------------------------------------------------
function ticks(low, high, wanted = 5) {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + 1e-9 * step; ++at) found.push(Number((at * step).toPrecision(12)));
  return found;
}
function range(values, grow = 0) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  if (!(low < high)) { low -= 1; high += 1; }
  return [low - grow * (high - low), high + grow * (high - low)];
}
/** An SVG with axes: { svg, x, y } where x and y turn values into places. */
function frame({ xs, ys, xName, yName, label, xTicks, yTicks, width = 600, height = 330, xDate = false, yDate = false }) {
  const shown = (isDate) => (t) => [t, isDate ? dateOf(Math.round(t)) : show(t)], left = yTicks ? 130 : yDate ? 96 : 62, right = 14, top = 10, bottom = xTicks ? 92 : 46;
  const x = (v) => left + (v - xs[0]) / (xs[1] - xs[0]) * (width - left - right);
  const y = (v) => height - bottom - (v - ys[0]) / (ys[1] - ys[0]) * (height - top - bottom);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const [at, text] of xTicks || ticks(...xs).map(shown(xDate))) {
    svg.append(draw("line", { x1: x(at), x2: x(at), y1: top, y2: height - bottom, class: "axis" }));
    svg.append(draw("text", xTicks ? { transform: `translate(${x(at) + 4} ${height - bottom + 12}) rotate(-35)`, "text-anchor": "end", class: "tick" } :
      { x: x(at), y: height - bottom + 16, "text-anchor": "middle", class: "tick" }, cut(text, 16)));
  }
  for (const [at, text] of yTicks || ticks(...ys).map(shown(yDate))) {
    svg.append(draw("line", { x1: left, x2: width - right, y1: y(at), y2: y(at), class: "axis" }));
    svg.append(draw("text", { x: left - 6, y: y(at) + 4, "text-anchor": "end", class: "tick" }, cut(text, 18)));
  }
  svg.append(draw("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, cut(xName, 60)));
  svg.append(draw("text", { transform: `translate(14 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, cut(yName, 44)));
  return { svg, x, y };
}
const path = (x, y, xs, ys) => xs.map((v, i) => `${i ? "L" : "M"}${x(v).toFixed(1)} ${y(ys[i]).toFixed(1)}`).join("");
function line({ svg, x, y }, xs, ys, stroke, width = 2, more = {}) {
  svg.append(draw("path", { d: path(x, y, xs, ys), fill: "none", stroke, "stroke-width": width, ...more }));
}
/** Horizontal bars from zero; a waterfall if each line says where it starts. */
function bars(lines, label, left = 210) {
  const high = 23, right = 92, width = 590, span = width - left - right;
  const ends = lines.flatMap((one) => [one.from ?? 0, (one.from ?? 0) + one.value]);
  let [low, top] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  if (low === top) top = low + 1;
  const x = (v) => left + (v - low) / (top - low) * span;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${high * lines.length + 4}`, role: "img",
    "aria-label": label + ": " + lines.map((one) => `${one.name} ${show(one.value)}`).join(", ") });
  svg.append(draw("line", { x1: x(0), x2: x(0), y1: 0, y2: high * lines.length + 4, class: "axis" }));
  lines.forEach((one, i) => {
    const y = i * high + 2, a = x(one.from ?? 0), b = x((one.from ?? 0) + one.value);
    svg.append(draw("text", { x: left - 8, y: y + 15, "text-anchor": "end", "font-style": one.plain ? "italic" : "normal" }, cut(one.name, Math.round(left / 7)), draw("title", {}, one.name)));
    svg.append(draw("rect", { x: Math.min(a, b).toFixed(1), y: y + 3, width: Math.max(Math.abs(b - a), .6).toFixed(1), height: high - 7,
      class: "bar " + (one.total ? "total" : one.value < 0 ? "minus" : "plus") }));
    svg.append(draw("text", { x: width - right + 8, y: y + 15, class: "value" }, one.text ?? signed(one.value)));
  });
  return svg;
}

// ---- summary and quality -------------------------------------------------------------------------------------------
$("summary").textContent = `${data.model}: ${plural(data.n_tiles, "tile")}, ${plural(data.n_columns, "column")}, ` +
  (numbers ? `predicts ${data.label}` : plural(data.classes.length, "class")) + (data.n_training ? `; trained on ${plural(data.n_training, "row")}` : "") + ".";
const MEASURES = { accuracy: ["Accuracy", percent], balanced_accuracy: ["Balanced accuracy", percent], auc: ["Area under the ROC curve", (v) => show(v)],
  log_loss: ["Log-loss", (v) => show(v)], r2: ["R²", (v) => show(v)], rmse: ["Root mean squared error", (v) => show(v)], mae: ["Mean absolute error", (v) => show(v)],
  median_error: ["Median absolute error", (v) => show(v)], coverage: ["Rows within the interval", percent], width: ["Mean width of the interval", (v) => show(v)] };
function drawQuality() {
  $("quality-note").textContent = data.quality_note;
  const quality = data.quality;
  if (quality === null) return;
  const named = [[data.model, quality.model], ...(quality.baseline ? [["Linear SVM", quality.baseline]] : [])];
  const table = make("table", { id: "measures-table" });
  table.append(make("thead", {}, make("tr", {}, make("th", { scope: "col" }, plural(quality.rows, "row")), ...named.map(([name]) => make("th", { scope: "col", class: "number" }, name)))));
  const body = make("tbody");
  for (const [key, [name, text]] of Object.entries(MEASURES))
    if (key in quality.model) body.append(make("tr", { "data-measure": key }, make("th", { scope: "row" }, name), ...named.map(([, one]) => make("td", { class: "number" }, text(one[key])))));
  table.append(body);
  $("measures").append(make("div", { class: "scroll" }, table));
  if (quality.model.confusion) $("measures").append(make("h3", {}, "Confusion matrix: rows are the truth, columns the prediction"), confusion(quality.model.confusion));
  if (quality.model.calibration) $("quality-chart").append(calibration(named));
  if (quality.model.residuals) $("quality-chart").append(residuals(quality.model.residuals));
}
function confusion(counts) {
  const table = make("table", { id: "confusion" }), shown = counts.length > 12 ? [] : counts;
  if (!shown.length) return make("p", { class: "soft" }, "Too many classes for a table.");
  table.append(make("thead", {}, make("tr", {}, make("th", {}), ...data.classes.map((name) => make("th", { scope: "col", class: "number" }, cut(name, 14))))));
  table.append(make("tbody", {}, ...shown.map((line, k) => {
    const total = sum(line);
    return make("tr", {}, make("th", { scope: "row" }, cut(data.classes[k], 20)), ...line.map((n) => {
      const share = total ? n / total : 0;
      return make("td", { class: "number", style: `background:color-mix(in srgb, var(--accent) ${Math.round(45 * share)}%, transparent)`, title: percent(share) }, n.toLocaleString("en"));
    }));
  })));
  return make("div", { class: "scroll" }, table);
}
function calibration(named) {
  const what = data.classes.length === 2 ? `predicted probability of ${data.classes[1]}` : "predicted probability of the predicted class";
  const chart = frame({ xs: [0, 1], ys: [0, 1], xName: what, yName: data.classes.length === 2 ? `share of rows that are ${data.classes[1]}` : "share of correct predictions", label: "Calibration curve" });
  line(chart, [0, 1], [0, 1], "currentColor", 1, { "stroke-dasharray": "4 4", opacity: .5 });
  const legend = make("ul", { class: "legend" });
  named.forEach(([name, one], k) => {
    if (!one.calibration) return;
    const points = one.calibration.filter(([, , n]) => n > 0);
    line(chart, points.map(([p]) => p), points.map(([, share]) => share), color(k), 2.2);
    for (const [p, share, n] of points) chart.svg.append(draw("circle", { cx: chart.x(p), cy: chart.y(share), r: 3.5, fill: color(k) }, draw("title", {}, `${name}: ${plural(n, "row")}`)));
    legend.append(entry(color(k), name));
  });
  return make("div", { id: "calibration" }, make("h3", {}, "Calibration"), chart.svg, legend);
}
function residuals({ predicted, residual }) {
  const chart = frame({ xs: range(predicted, .03), ys: range(residual, .03), xName: `predicted ${data.label}`, yName: "actual minus predicted", label: "Residuals" });
  predicted.forEach((v, i) => chart.svg.append(draw("circle", { cx: chart.x(v).toFixed(1), cy: chart.y(residual[i]).toFixed(1), r: 2.5, fill: color(0), "fill-opacity": .5 })));
  line(chart, range(predicted, .03), [0, 0], "currentColor", 1, { opacity: .6 });
  return make("div", { id: "residuals" }, make("h3", {}, `Residuals of ${plural(predicted.length, "row")}`), chart.svg);
}

// ---- importance and effects ----------------------------------------------------------------------------------------
const ranked = data.importance.map((value, j) => [value, j]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).map(([, j]) => j);
const everywhere = [["", "all rows"], ...data.regions.map((region, k) => [String(k), `region ${k + 1}: ${cut(region.rule, 60)}`])];
function drawImportance() {
  const region = $("importance-region").value;
  const lines = region === "" ? ranked.slice(0, 15).map((j) => [j, data.importance[j]]) : data.regions[Number(region)].importance;
  const shown = lines.map(([j, value]) => ({ name: data.columns[j].name, value, text: show(value) }));
  $("importance").replaceChildren(bars(shown, "Importance"));
  if (data.n_columns > shown.length) $("importance").append(make("p", { class: "soft" }, `The first ${shown.length} of ${data.n_columns.toLocaleString("en")} columns.`));
}
function drawEffect() {
  const effect = data.effects.find((one) => one.column === Number($("effect-column").value));
  if (!effect) return;
  const c = Number($("effect-output").value) || 0, region = $("effect-region").value, name = data.columns[effect.column].name;
  const chosen = region === "" ? effect.mean[c] : effect.regions[Number(region)][c];
  const what = numbers ? `change of ${data.label}` : `change of the ${data.votes ? "margin" : "score"} of ${data.outputs[c]}`;
  if (data.columns[effect.column].text) {
    const shown = effect.points.map((text, i) => ({ name: text, value: chosen[i] })).slice(0, 30);
    $("effect").replaceChildren(bars(shown, `Effect of ${name}`));
  } else {
    const others = region === "" && data.regions.length > 1 ? effect.regions.map((one) => one[c]) : [];
    const chart = frame({ xs: range(effect.points), ys: range([...chosen, ...others.flat()], .04), xName: name, yName: what, label: `Effect of ${name}`, xDate: data.columns[effect.column].date });
    others.forEach((values, k) => line(chart, effect.points, values, color(k), 1.1, { opacity: .75, class: "region-curve" }));
    line(chart, effect.points, chosen, "currentColor", 2.6, { class: "effect-curve" });
    for (const at of effect.deciles) chart.svg.append(draw("line", { x1: chart.x(at), x2: chart.x(at), y1: 284, y2: 278, class: "ink" }));
    $("effect").replaceChildren(chart.svg);
    if (others.length) $("effect").append(make("ul", { class: "legend" }, entry("currentColor", "all rows"), ...others.map((_, k) => entry(color(k), `region ${k + 1}`))));
  }
  $("effect-note").textContent = `${what[0].toUpperCase() + what.slice(1)}, relative to its mean over the rows. ` +
    (data.columns[effect.column].text ? "" : "Ticks at the bottom are deciles. ") +
    (!data.contributes ? "Partial dependence: the mean over up to 200 rows with the column set to each value." :
      (data.bends ? "The curves are the model's own: piecewise linear and exact." : "The model is linear in each region: the lines are exact.") +
      (data.soft ? " Rows share several regions; the curves use their mean shares." : ""));
}
options($("importance-region"), everywhere, "");
$("importance-note").textContent = data.contributes ? `Mean absolute deviation of each column's contribution to ${unit} from its mean.` :
  `Mean absolute change of ${unit} if the values of the column are shuffled.`;
options($("effect-region"), everywhere, "");
options($("effect-output"), data.outputs.map((name, c) => [String(c), name]), "0");
$("effect-output-label").hidden = data.outputs.length === 1;
options($("effect-column"), data.effects.map((effect) => [String(effect.column), data.columns[effect.column].name]));
$("importance-region").addEventListener("change", drawImportance);
for (const id of ["effect-column", "effect-region", "effect-output"]) $(id).addEventListener("change", drawEffect);

// ---- regions -------------------------------------------------------------------------------------------------------
function balance(region) {
  const text = region.counts.map((n, c) => [n, c]).filter(([n]) => n > 0).sort((a, b) => b[0] - a[0]).map(([n, c]) => `${data.classes[c]} ${percent(n / region.rows)}`).join(", ") || "no rows";
  const bar = make("div", { class: "balance", role: "img", "aria-label": text, title: text });
  region.counts.forEach((n, c) => { if (n) bar.append(make("span", { style: `width:${100 * n / region.rows}%;background:${classColor(c)}` })); });
  return [bar, make("span", { class: "soft" }, cut(text, 40))];
}
function drawRegions() {
  $("regions-note").textContent = data.regions_note;
  const heads = ["Region", "In words", "Rows", numbers ? `Mean ${data.label}` : data.truth ? "Classes" : "Predicted classes", ...(data.truth ? [numbers ? "Mean absolute error" : "Accuracy"] : []), "Strongest features"];
  $("regions").tHead.append(make("tr", {}, ...heads.map((text, i) => make("th", { scope: "col", class: [0, 2].includes(i) || text === "Accuracy" ? "number" : "" }, text))));
  data.regions.forEach((region, k) => {
    const button = make("button", { type: "button", "aria-label": `Region ${k + 1}` }, String(k + 1));
    const row = make("tr", { "data-region": k },
      make("td", { class: "number" }, make("span", { class: "swatch", style: `background:${color(k)}` }), " ", button),
      make("td", { class: "rule" }, region.rule, make("br"), make("span", { class: "soft" }, (data.exact ? "exact rule" : `covers ${percent(region.covers)}, ${percent(region.pure)} pure`) + (region.tiles > 1 ? `; ${region.tiles} tiles` : ""))),
      make("td", { class: "number" }, region.rows.toLocaleString("en"), make("br"), make("span", { class: "soft" }, percent(region.rows / data.n_used))),
      make("td", {}, ...(numbers ? [show(region.mean)] : balance(region))));
    if (data.truth) row.append(make("td", { class: "number" }, numbers ? show(region.error) : percent(region.accuracy)));
    row.append(make("td", {}, region.importance.slice(0, 3).map(([j, value]) => `${cut(data.columns[j].name, 24)} (${show(value)})`).join(", ") || "–"));
    row.addEventListener("click", () => chooseRegion(state.region === k ? null : k));
    $("regions").tBodies[0].append(row);
  });
  if (!numbers) data.classes.slice(0, data.palette.length).forEach((name, c) => $("classes").append(entry(classColor(c),
    c === data.palette.length - 1 && data.classes.length > data.palette.length ? "other classes" : name)));
}
function chooseRegion(k) {
  state.region = k;
  for (const line of $("regions").tBodies[0].rows) {
    const here = Number(line.dataset.region) === k;
    line.classList.toggle("chosen", here);
    line.querySelector("button").setAttribute("aria-pressed", here);
  }
  for (const id of ["importance-region", "effect-region"]) $(id).value = k === null ? "" : String(k);
  drawImportance();
  drawEffect();
  paint();
}

// ---- a row ---------------------------------------------------------------------------------------------------------
const rowValues = (i) => data.columns.map((_, j) => data.rows.values[j][i]);
function account() {
  if (typeof model === "undefined" || model === null) return data.rows.accounts[byRow.get(state.row)];
  const found = model.explain(state.values);
  const owned = found.tiles.filter((tile) => data.region_of_tile[tile.tile] !== undefined);
  const home = owned.reduce((best, tile) => (best === null || tile.weight > best.weight ? tile : best), null);
  return { ...found, region: home === null ? null : data.region_of_tile[home.tile],
    contributions: found.contributions && found.contributions.map((one) => data.columns.map((column, j) => [column.name, one[model.columns[j].name]])) };
}
function fact(list, name, ...value) { list.append(make("dt", {}, name), make("dd", {}, ...value)); }
function drawRow() {
  const box = $("row");
  $("row-title").textContent = state.row === null ? "A row" : `Row ${state.row}` + (isChanged() ? ", changed" : "");
  box.replaceChildren();
  let found;
  try { found = account(); } catch (error) { $("message").textContent = error.message; return; }
  state.account = found;
  const i = byRow.get(state.row), facts = make("dl", { class: "facts" });
  const values = [found.label].flat(), middle = data.quantiles ? data.quantiles.length >> 1 : null;
  const shown = numbers ? (data.quantiles ? show(values[middle]) : values.map(show).join(", ")) : data.classes[data.js_classes.indexOf(found.label)];
  fact(facts, "Predicted", make("span", { class: "big", id: "predicted" }, shown));
  if (data.quantiles) fact(facts, `Quantiles ${data.quantiles[0]} to ${data.quantiles.at(-1)}`, make("span", { id: "interval" }, `${show(values[0])} to ${show(values.at(-1))}`));
  if (data.rows.intervals && !isChanged()) fact(facts, "Interval", make("span", { id: "interval" }, data.rows.intervals[i].map(show).join(" to ")));
  if (found.probabilities) fact(facts, "Probability", make("span", { id: "probability" }, probabilities(found.probabilities)));
  if (data.truth && !isChanged()) fact(facts, "Truth", make("span", { id: "truth" }, numbers ? show(data.rows.truth[i]) : data.classes[data.rows.truth[i]]));
  if (found.region !== null && data.regions.length > 1) {
    const button = make("button", { type: "button", id: "home" }, `region ${found.region + 1}`);
    button.addEventListener("click", () => chooseRegion(found.region));
    fact(facts, "Belongs to", button, ` ${data.regions[found.region].rule}`);
  }
  box.append(facts);
  if (found.contributions) waterfall(box, found);
  else votes(box, found);
}
function probabilities(shares) {
  const order = shares.map((_, c) => c).sort((a, b) => shares[b] - shares[a]).slice(0, 5);
  return order.map((c) => `${data.classes[c]} ${percent(shares[c])}`).join(", ");
}
function chosenOutput(found) {
  if (found.scores.length === 1) return 0;
  if (state.output !== null) return state.output;
  return numbers ? (data.quantiles ? data.quantiles.length >> 1 : 0) : Math.max(0, data.js_classes.indexOf(found.label));
}
function outputChoice(box, found, c) {
  if (found.scores.length === 1) return;
  const select = make("select", { id: "output", "aria-label": "Output that is explained" });
  options(select, data.outputs.map((name, k) => [String(k), name]), String(c));
  select.addEventListener("change", () => { state.output = Number(select.value); drawRow(); });
  box.append(make("p", {}, "Explained: ", select));
}
function waterfall(box, found) {
  const c = chosenOutput(found), total = found.scores[c];
  outputChoice(box, found, c);
  const start = found.intercept[c];
  const parts = found.contributions[c].slice().sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const lines = [{ name: "start", value: start, plain: true, total: true, text: show(start) }];
  let at = start;
  const add = (name, value, plain) => { lines.push({ name, value, from: at, plain }); at += value; };
  for (const [name, value] of parts.slice(0, 10)) add(name === "(others)" ? "other columns" : cut(name, 16) + shownOf(name), value, name === "(others)");
  if (parts.length > 10) add(plural(parts.length - 10, "other column"), sum(parts.slice(10).map(([, value]) => value)), true);
  lines.push({ name: numbers ? data.label : `score of ${data.outputs[c]}`, value: total, plain: true, total: true, text: show(total) });
  box.append(make("h3", {}, numbers ? `Contributions to ${data.label}` : `Contributions to the score of ${data.outputs[c]}: for (+) or against (−)`), bars(lines, "Contributions", 240));
  box.append(make("p", { class: "soft" }, numbers ? "The contributions of the columns add up exactly to the prediction." : "The contributions of the columns add up exactly to the score. A positive score favors the class."));
}
function shownOf(name) {
  const j = data.columns.findIndex((column) => column.name === name);
  return j < 0 ? "" : ` = ${shownValue(state.values[j], data.columns[j])}`;
}
function votes(box, found) {
  const c = chosenOutput(found);
  outputChoice(box, found, c);
  const shown = found.tiles.map((tile) => ({ name: `tile ${tile.tile}, weight ${show(tile.weight)}`, value: tile.votes[c] })).sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, 12);
  if (shown.length) box.append(make("h3", {}, `Votes of the tiles for ${data.outputs[c]}`), bars(shown, "Votes", 240));
  box.append(make("p", { class: "soft", id: "reason" }, `Score ${show(found.scores[c])}. ${found.reason || ""}`));
}
const isChanged = () => state.row !== null && rowValues(byRow.get(state.row)).some((value, j) => value !== state.values[j]);
function chooseRow(number) {
  if (!byRow.has(number)) {
    const known = data.rows.numbers, near = known.reduce((a, b) => (Math.abs(b - number) < Math.abs(a - number) ? b : a));
    $("message").textContent = number >= 1 && number <= data.n_rows && Number.isInteger(number)
      ? `Row ${number} is not among the ${known.length.toLocaleString("en")} rows of this page; the nearest is ${near}.`
      : `There is no such row: choose a number from 1 to ${data.n_rows}.`;
    return;
  }
  $("message").textContent = "";
  $("number").value = number;
  state.row = number;
  state.output = null;
  state.values = rowValues(byRow.get(number));
  drawControls();
  drawRow();
  paint();
}
function step(by) {
  const i = state.row === null ? -1 : byRow.get(state.row), n = data.rows.numbers.length;
  chooseRow(data.rows.numbers[(i + by + n) % n]);
}
$("number").max = data.n_rows;
$("choose").noValidate = true;
$("choose").addEventListener("submit", (event) => { event.preventDefault(); chooseRow($("number").value === "" ? NaN : Number($("number").value)); });
$("before").addEventListener("click", () => step(-1));
$("after").addEventListener("click", () => step(1));

// ---- what if -------------------------------------------------------------------------------------------------------
const canChange = typeof model !== "undefined" && model !== null;
$("what-if-note").textContent = canChange ? "Change the values and watch the prediction, which is computed on this page." : data.no_model;
$("reset").hidden = $("more").hidden = !canChange;
function change(j, value) {
  state.values[j] = value;
  $("message").textContent = "";
  markChanges();
  drawRow();
  paint();
}
function drawControls() {
  if (!canChange) return;
  const chosen = state.all ? ranked : ranked.slice(0, 12);
  $("more").hidden = ranked.length <= 12;
  $("what-if").replaceChildren();
  for (const j of chosen) {
    const column = data.columns[j], id = `column-${j}`, label = make("label", { for: id, "data-column": j }, column.name);
    $("what-if").append(label);
    if (column.text) {
      const select = make("select", { id });
      const texts = column.texts.includes(state.values[j]) ? column.texts : [state.values[j], ...column.texts];
      options(select, texts.map((text, k) => [String(k), text === null ? "(missing)" : text]), String(texts.indexOf(state.values[j])));
      select.addEventListener("change", () => change(j, texts[Number(select.value)]));
      $("what-if").append(select);
    } else {
      const bounds = { min: column.low, max: column.high, step: column.step };
      const slider = make("input", { type: "range", id, ...bounds });
      const field = make("input", { ...(column.date ? { type: "date" } : { type: "number", step: "any" }), "aria-label": `${column.name}, as a ${column.date ? "date" : "number"}` });
      const written = (value) => (column.date ? dateOf(Math.floor(value)) : value);
      const read = () => (column.date ? field.valueAsNumber / 86400000 : Number(field.value));
      slider.value = state.values[j] ?? column.middle;
      field.value = state.values[j] === null ? "" : written(state.values[j]);
      slider.addEventListener("input", () => { field.value = written(Number(slider.value)); change(j, Number(slider.value)); });
      field.addEventListener("input", () => { if (field.value !== "") slider.value = read(); change(j, field.value === "" ? null : read()); });
      $("what-if").append(slider, field);
    }
  }
  markChanges();
}
function markChanges() {
  const before = rowValues(byRow.get(state.row));
  for (const label of $("what-if").querySelectorAll("label")) label.classList.toggle("changed", before[Number(label.dataset.column)] !== state.values[Number(label.dataset.column)]);
}
$("reset").addEventListener("click", () => chooseRow(state.row));
$("more").addEventListener("click", () => { state.all = !state.all; $("more").textContent = state.all ? "Fewer columns" : "All columns"; $("more").setAttribute("aria-expanded", state.all); drawControls(); });

// ---- the map -------------------------------------------------------------------------------------------------------
const axes = [...(data.projection ? data.projection.names.map((name, k) => [`projection-${k}`, name]) : []), ...ranked.map((j) => [String(j), data.columns[j].name])];
let points = [], mapped = null;
function places(key) {
  if (key.startsWith("projection-")) return { values: data.projection.values[Number(key.slice(11))], now: null, texts: null };
  const j = Number(key), column = data.columns[j], values = data.rows.values[j];
  if (!column.text) return { values, now: state.values ? state.values[j] : null, texts: null, date: column.date };
  // Texts stand in rows; points are spread evenly within them.
  const at = new Map(column.texts.map((text, k) => [text, k]));
  return { values: values.map((text, i) => (at.get(text) ?? 0) + .6 * ((i * .618034) % 1) - .3), now: state.values ? at.get(state.values[j]) : null,
    texts: column.texts.map((text, k) => [k, text === null ? "(missing)" : text]).slice(0, 24) };
}
function drawMap() {
  const [x, y] = [places($("map-x").value), places($("map-y").value)];
  const known = (values) => values.filter((v) => v !== null);
  const name = (id) => $(id).selectedOptions[0].textContent;
  mapped = frame({ xs: range(known(x.values), .03), ys: range(known(y.values), .04), xName: name("map-x"), yName: name("map-y"), xTicks: x.texts, yTicks: y.texts, xDate: x.date, yDate: y.date,
    width: 900, height: 460, label: `Map of ${data.rows.numbers.length} rows by ${name("map-x")} and ${name("map-y")}; the table of regions has the same regions` });
  points = data.rows.numbers.map((number, i) => {
    if (x.values[i] === null || y.values[i] === null) return null;
    const point = draw("circle", { cx: mapped.x(x.values[i]).toFixed(1), cy: mapped.y(y.values[i]).toFixed(1), r: data.rows.numbers.length > 500 ? 3.6 : 4.6, class: "point", "data-row": number },
      draw("title", {}, `row ${number}, region ${data.rows.region[i] + 1}`));
    point.addEventListener("click", () => chooseRow(number));
    mapped.svg.append(point);
    return point;
  });
  $("map").replaceChildren(mapped.svg);
  paint();
}
function shade(value, low, high) {
  return `color-mix(in srgb, ${data.palette[5]} ${Math.round(100 * Math.min(1, Math.max(0, (value - low) / (high - low))))}%, ${data.palette[4]})`;
}
function paint() {
  const by = $("color").value, legend = $("legend");
  const values = by === "truth" ? data.rows.truth : by === "predicted" ? data.rows.predicted : data.rows.region;
  const bounds = numbers && by !== "region" ? range(values) : null;
  points.forEach((point, i) => {
    if (!point) return;
    point.setAttribute("fill", bounds ? shade(values[i], ...bounds) : by === "region" ? color(values[i]) : classColor(values[i]));
    point.classList.toggle("away", state.region !== null && data.rows.region[i] !== state.region);
    point.classList.toggle("chosen", data.rows.numbers[i] === state.row);
  });
  legend.replaceChildren();
  if (bounds) legend.append(...[0, .5, 1].map((part) => bounds[0] + part * (bounds[1] - bounds[0])).map((v) => entry(shade(v, ...bounds), show(v))));
  else if (by === "region") legend.append(...data.regions.map((_, k) => entry(color(k), `region ${k + 1}`)));
  else legend.append(...data.classes.slice(0, data.palette.length).map((name, c) => entry(classColor(c), name)));
  if (mapped) mapped.svg.querySelectorAll(".star").forEach((star) => star.remove());
  if (mapped && state.values && isChanged()) {
    const [x, y] = [places($("map-x").value).now, places($("map-y").value).now];
    if (x !== null && y !== null && x !== undefined && y !== undefined)
      mapped.svg.append(draw("path", { class: "star", d: `M${mapped.x(x)} ${mapped.y(y)}m0 -9l2.6 6h6.4l-5 4 2 6.4-6-4-6 4 2-6.4-5-4h6.4z` }));
  }
}
const straight = axes.filter(([key]) => key.startsWith("projection-") || !data.columns[Number(key)].text);
const first = straight.length > 1 ? straight : axes;
options($("map-x"), axes, first[0][0]);
options($("map-y"), axes, first[Math.min(1, first.length - 1)][0]);
options($("color"), [["region", "region"], ["predicted", numbers ? `predicted ${data.label}` : "predicted class"], ...(data.truth ? [["truth", numbers ? `true ${data.label}` : "true class"]] : [])], data.regions.length > 1 ? "region" : "predicted");
for (const id of ["map-x", "map-y"]) $(id).addEventListener("change", drawMap);
$("color").addEventListener("change", paint);
$("map-note").textContent = (data.rows.numbers.length < data.n_rows ? `${data.rows.numbers.length.toLocaleString("en")} of ${data.n_rows.toLocaleString("en")} evenly spaced rows. ` : "") + "Choose a point to see its row above; a star is the changed row.";

drawQuality();
drawRegions();
drawMap();
chooseRegion(null);
chooseRow(data.rows.numbers[0]);
