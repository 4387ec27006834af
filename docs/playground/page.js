"use strict";
const $ = (id) => document.getElementById(id);
const COLORS = { "1": "#e69f00", "-1": "#0072b2" }, GRID = 110, MOST_POINTS = 600;
const state = { points: [], labels: [], frames: [], at: 0, timer: null, cursor: [0, 0] };

// ---- points: places between -1 and 1 ---------------------------------------------------------------------------------
const normal = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
const SETS = {
  "four clouds": (random, n) => Array.from({ length: n }, (_, i) => {
    const [a, b] = [[-.5, -.5], [.5, .5], [-.5, .5], [.5, -.5]][i % 4];
    return [[a + .17 * normal(random), b + .17 * normal(random)], i % 4 < 2 ? 1 : -1];
  }),
  "two moons": (random, n) => Array.from({ length: n }, (_, i) => {
    const turn = Math.PI * random(), side = i % 2 ? 1 : -1;
    return [[side * (.5 * Math.cos(turn) - .25) + .06 * normal(random), side * (.55 * Math.sin(turn) - .17) + .06 * normal(random)], side];
  }),
  "rings": (random, n) => Array.from({ length: n }, (_, i) => {
    const turn = 2 * Math.PI * random(), r = (i % 2 ? .75 : .3) + .07 * normal(random);
    return [[r * Math.cos(turn), r * Math.sin(turn)], i % 2 ? 1 : -1];
  }),
  "stripes": (random, n) => Array.from({ length: n }, () => {
    const p = [2 * random() - 1, 2 * random() - 1];
    return [p, Math.sin(7 * p[0] + 1.5 * p[1]) > 0 ? 1 : -1];
  }),
  "nothing": () => [],
};
function load(name) {
  const drawn = SETS[name](randomOf(7), 240);
  state.points = drawn.map(([p]) => p.map((v) => Math.max(-.98, Math.min(.98, v))));
  state.labels = drawn.map(([, y]) => y);
  fit();
}
function add(place, label) {
  if (state.points.length >= MOST_POINTS) { say(`No more than ${MOST_POINTS} points.`); return; }
  state.points.push(place);
  state.labels.push(label);
  fit();
}

// ---- training --------------------------------------------------------------------------------------------------------
const settings = () => ({ kind: $("model").value, tiles: Number($("tiles").value), pieces: Number($("pieces").value), C: 10 ** Number($("C").value), seed: Number($("seed").value), tol: 1e-3 });
function fit() {
  clearInterval(state.timer);
  const chosen = settings();
  $("tiles").disabled = !MODELS[chosen.kind].tiles;
  $("tiles-value").textContent = chosen.tiles;
  $("pieces-value").textContent = chosen.pieces > 1 ? `${chosen.pieces} knots` : "straight";
  $("C-value").textContent = String(Number(chosen.C.toPrecision(2)));
  const both = new Set(state.labels).size === 2;
  state.frames = both ? [...train(state.points, state.labels, chosen)] : [];
  $("frame").max = Math.max(0, state.frames.length - 1);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || !$("watch").checked;
  if (still || !both) showFrame(state.frames.length - 1);
  else play();
}
function play() {
  clearInterval(state.timer);
  let at = 0;
  showFrame(0);
  state.timer = setInterval(() => {
    at += 1;
    if (at >= state.frames.length) clearInterval(state.timer);
    else showFrame(at);
  }, 90);
}
/** What to say of a frame with tiles. */
const STAGES = {
  descent: ({ epoch, objective, gap }) => `Epoch ${epoch}: objective ${objective.toPrecision(6)}, duality gap ${gap.toPrecision(3)}`,
  gradient: ({ step, loss }) => `Learning the gate, step ${step}: mean loss ${loss.toPrecision(3)}`,
  polish: ({ objective, gap }) => `Polishing the tiles: objective ${objective.toPrecision(6)}, duality gap ${gap.toPrecision(3)}`,
  EM: ({ step, objective }) => `EM, step ${step}: objective ${objective.toPrecision(6)}`,
};
function showFrame(at) {
  state.at = at;
  $("frame").value = Math.max(0, at);
  paint();
  const frame = state.frames[at];
  if (!frame) { say("Draw points of both classes."); return; }
  if (frame.stage === "k-means") { say(`Placing the tiles: k-means, step ${at + 1}.`); return; }
  const right = state.points.filter((p, i) => (scoreOf(frame.model, p) > 0 ? 1 : -1) === state.labels[i]).length;
  say(`${STAGES[frame.stage](frame)}, ${(100 * right / state.points.length).toFixed(1)} % of ${state.points.length} points classified correctly.`);
}
const say = (text) => { $("status").textContent = text; };

// ---- the picture -----------------------------------------------------------------------------------------------------
const canvas = $("plane"), pen = canvas.getContext("2d");
const toPlace = (p) => [(p[0] + 1) / 2 * canvas.width, (1 - p[1]) / 2 * canvas.height];
function mixed(score) {
  const strength = Math.min(1, Math.abs(score)) * .34 + .06, [r, g, b] = score > 0 ? [230, 159, 0] : [0, 114, 178];
  return `rgba(${r},${g},${b},${strength})`;
}
/** Dotted lines between neighbors of the grid that belong to different tiles. */
function edges(homes, side) {
  pen.beginPath();
  pen.lineWidth = 1;
  pen.setLineDash([2, 4]);
  pen.strokeStyle = getComputedStyle(document.body).color;
  for (let j = 0; j < GRID; ++j) for (let i = 0; i < GRID; ++i) {
    const k = j * GRID + i;
    if (i + 1 < GRID && homes[k] !== homes[k + 1]) { pen.moveTo((i + 1) * side, j * side); pen.lineTo((i + 1) * side, (j + 1) * side); }
    if (j + 1 < GRID && homes[k] !== homes[k + GRID]) { pen.moveTo(i * side, (j + 1) * side); pen.lineTo((i + 1) * side, (j + 1) * side); }
  }
  pen.stroke();
  pen.setLineDash([]);
}
/** The line where the score is zero, from its values on the grid: in each square, from side to side. */
function boundary(scores, side) {
  pen.beginPath();
  pen.lineWidth = 2.2;
  for (let j = 0; j + 1 < GRID; ++j) for (let i = 0; i + 1 < GRID; ++i) {
    const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]].map(([a, b]) => [(a + .5) * side, (b + .5) * side, scores[b * GRID + a]]);
    const crossed = [];
    corners.forEach(([x, y, s], at) => {
      const [u, v, t] = corners[(at + 1) % 4];
      if (s > 0 !== t > 0) crossed.push([x + (u - x) * s / (s - t), y + (v - y) * s / (s - t)]);
    });
    for (let at = 0; at + 1 < crossed.length; at += 2) { pen.moveTo(...crossed[at]); pen.lineTo(...crossed[at + 1]); }
  }
  pen.stroke();
}
/** A cross over the points, with a rim in the color of the page. */
function cross(center) {
  const [x, y] = toPlace(center), style = getComputedStyle(document.body);
  for (const [color, long, wide] of [[style.backgroundColor, 8, 6], [style.color, 6.5, 3]]) {
    pen.fillStyle = color;
    pen.fillRect(x - long, y - wide / 2, 2 * long, wide);
    pen.fillRect(x - wide / 2, y - long, wide, 2 * long);
  }
}
function paint() {
  const side = canvas.width / GRID, frame = state.frames[state.at];
  pen.clearRect(0, 0, canvas.width, canvas.height);
  if (frame) {
    const { model } = frame, center = (i, j) => [2 * (i + .5) / GRID - 1, 1 - 2 * (j + .5) / GRID];
    const seen = Array.from({ length: GRID * GRID }, (_, k) => lookAt(model, center(k % GRID, Math.floor(k / GRID))));
    const scores = seen.map(({ score }) => score), homes = seen.map(({ home }) => home);
    for (let j = 0; j < GRID; ++j) for (let i = 0; i < GRID; ++i) {
      const k = j * GRID + i;
      pen.fillStyle = mixed(scores[k]);
      pen.fillRect(i * side, j * side, side, side);
    }
    edges(homes, side);
    boundary(scores, side);
  }
  state.points.forEach((p, i) => {
    const [x, y] = toPlace(p);
    pen.beginPath();
    if (state.labels[i] > 0) pen.arc(x, y, 4.2, 0, 2 * Math.PI);
    else pen.rect(x - 3.8, y - 3.8, 7.6, 7.6);
    pen.fillStyle = COLORS[state.labels[i]];
    pen.fill();
    pen.lineWidth = 1;
    pen.strokeStyle = "#fff";
    pen.stroke();
  });
  if (frame) frame.model.centers.forEach(cross);
  if (document.activeElement === canvas) {
    const [x, y] = toPlace(state.cursor);
    pen.strokeStyle = getComputedStyle(document.body).color;
    pen.lineWidth = 1.5;
    pen.strokeRect(x - 7, y - 7, 14, 14);
  }
}

// ---- controls --------------------------------------------------------------------------------------------------------
const label = () => Number(document.querySelector("input[name=class]:checked").value);
canvas.addEventListener("pointerdown", (event) => {
  const box = canvas.getBoundingClientRect();
  state.cursor = [2 * (event.clientX - box.left) / box.width - 1, 1 - 2 * (event.clientY - box.top) / box.height];
  add(state.cursor.slice(), label());
});
canvas.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [-.04, 0], ArrowRight: [.04, 0], ArrowUp: [0, .04], ArrowDown: [0, -.04] }[event.key];
  if (step) { state.cursor = state.cursor.map((v, f) => Math.max(-.98, Math.min(.98, v + step[f]))); paint(); }
  else if (event.key === "Enter" || event.key === " ") add(state.cursor.slice(), label());
  else return;
  event.preventDefault();
});
for (const name of ["focus", "blur"]) canvas.addEventListener(name, paint);
for (const id of ["model", "tiles", "pieces", "C", "seed"]) $(id).addEventListener("input", fit);
$("set").addEventListener("change", () => load($("set").value));
$("frame").addEventListener("input", () => { clearInterval(state.timer); showFrame(Number($("frame").value)); });
$("again").addEventListener("click", play);
$("undo").addEventListener("click", () => { state.points.pop(); state.labels.pop(); fit(); });
for (const [value, { name }] of Object.entries(MODELS)) $("model").append(new Option(name, value));
for (const name of Object.keys(SETS)) $("set").append(new Option(name, name));
$("model").value = "clustered";
load("four clouds");
