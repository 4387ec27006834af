"use strict";
// ---- the trainer: the same problems that svmosaic's core solves, for points in the plane ------------------------------
//
//   minimize  1/2 ||V||^2 + C sum_i max(0, 1 - y_i f_i) ,   f_i = sum_a coef[i,a] <V[block[i,a]], (phi(x_i), 1)>
//
// by dual coordinate descent. Cells have a block each; clustered cells share one more; around anchors, rows share blocks.

const MODELS = {
  linear: { name: "Linear SVM", tiles: false },
  kmeans: { name: "Cells: k-means, an SVM in each", tiles: true },
  clustered: { name: "Clustered: cells pulled towards a global SVM", tiles: true },
  local: { name: "Locally linear: anchors share each row", tiles: true },
};
const NEIGHBORS = 3, MOST_EPOCHS = 300, REACH = 3;

/** Numbers between 0 and 1 from a seed, the same everywhere. */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** The features of pieces: a standardized, clipped column and a hat function per knot, for both coordinates. */
function fitPieces(points, nKnots) {
  return [0, 1].map((f) => {
    const values = points.map((p) => p[f]).sort((a, b) => a - b), n = values.length;
    const mean = values.reduce((a, b) => a + b, 0) / n;
    const spread = Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / n);
    const knots = Array.from({ length: nKnots }, (_, t) => values[Math.round((n - 1) * t / (nKnots - 1))]);
    return { center: mean, scale: spread > 0 ? 1 / spread : 0, knots: [...new Set(knots)] };
  });
}
function featuresOf(map, point) {
  if (map === null) return [...point, 1];
  const found = [];
  map.forEach(({ center, scale, knots }, f) => {
    const x = point[f];
    found.push(Math.max(-REACH, Math.min(REACH, (x - center) * scale)));
    if (knots.length < 2) return;
    knots.forEach((u, t) => {
      const [before, after] = [knots[t - 1], knots[t + 1]];
      if (x <= u) found.push(t === 0 ? 1 : Math.max(0, (x - before) / (u - before)));
      else found.push(t === knots.length - 1 ? 1 : Math.max(0, (after - x) / (after - u)));
    });
  });
  return [...found, 1];
}

const squared = (p, q) => (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2;
function nearest(centers, point) {
  let best = 0;
  for (let k = 1; k < centers.length; ++k) if (squared(point, centers[k]) < squared(point, centers[best])) best = k;
  return best;
}

/** k-means++ and Lloyd's steps; gives the centers after each. */
function* placed(points, n, random) {
  const centers = [points[Math.floor(random() * points.length)].slice()];
  while (centers.length < Math.min(n, points.length)) {
    const far = points.map((p) => Math.min(...centers.map((c) => squared(p, c)))), total = far.reduce((a, b) => a + b, 0);
    if (total === 0) break;
    let left = random() * total, at = 0;
    while (at < far.length - 1 && (left -= far[at]) > 0) ++at;
    centers.push(points[at].slice());
  }
  for (let step = 0; step < 15; ++step) {
    yield centers.map((c) => c.slice());
    const sums = centers.map(() => [0, 0, 0]);
    for (const p of points) { const s = sums[nearest(centers, p)]; s[0] += p[0]; s[1] += p[1]; s[2] += 1; }
    let moved = 0;
    sums.forEach(([a, b, count], k) => {
      if (!count) return;
      const now = [a / count, b / count];
      moved += squared(now, centers[k]);
      centers[k] = now;
    });
    if (moved < 1e-12) break;
  }
  yield centers.map((c) => c.slice());
}

/** Tiles and weights of a point. */
function codeOf(model, point) {
  if (model.kind === "linear") return [[0, 1]];
  if (model.kind !== "local") return [[nearest(model.centers, point), 1]];
  const order = model.centers.map((c, k) => [squared(point, c), k]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, NEIGHBORS);
  const shares = order.map(([d]) => Math.exp(-model.scale * (d - order[0][0]))), total = shares.reduce((a, b) => a + b, 0);
  return order.map(([, k], a) => [k, shares[a] / total]);
}
/** Blocks of the problem for tiles: clustered cells have a global block more. */
function blocksOf(model, code) {
  return model.kind === "clustered" ? [...code, [model.centers.length, 1]] : code;
}
function dot(v, z) { let total = 0; for (let f = 0; f < z.length; ++f) total += v[f] * z[f]; return total; }
function scoreOf(model, point) {
  const z = featuresOf(model.map, point);
  return blocksOf(model, codeOf(model, point)).reduce((total, [b, coef]) => total + coef * dot(model.weights[b], z), 0);
}
function homeOf(model, point) { return codeOf(model, point).reduce((best, one) => (one[1] > best[1] ? one : best))[0]; }

/** Frames of a fit: models with a stage, and at the end the objective and the duality gap. */
function* train(points, labels, settings) {
  const { kind, tiles, pieces, C, seed = 0 } = settings, random = randomOf(seed);
  const map = pieces > 1 ? fitPieces(points, pieces) : null;
  const size = featuresOf(map, points[0]).length;
  const model = { kind, map, centers: [], scale: 1, weights: [] };
  if (MODELS[kind].tiles) {
    for (const centers of placed(points, tiles, random)) {
      model.centers = centers;
      model.weights = Array.from({ length: centers.length + 1 }, () => new Float64Array(size));
      yield { stage: "k-means", model: { ...model } };
    }
  }
  if (kind === "local") {
    const near = points.map((p) => Math.min(...model.centers.map((c) => squared(p, c))));
    const mean = near.reduce((a, b) => a + b, 0) / near.length;
    model.scale = mean > 0 ? 1 / mean : 1;
  }
  const weights = Array.from({ length: model.centers.length + 1 }, () => new Float64Array(size));
  const rows = points.map((p) => featuresOf(map, p)), blocks = points.map((p) => blocksOf(model, codeOf(model, p)));
  const norms = rows.map((z, i) => dot(z, z) * blocks[i].reduce((total, [, coef]) => total + coef * coef, 0));
  const alpha = new Float64Array(points.length), order = points.map((_, i) => i);
  const margin = (i) => blocks[i].reduce((total, [b, coef]) => total + coef * dot(weights[b], rows[i]), 0);
  for (let epoch = 1; epoch <= MOST_EPOCHS; ++epoch) {
    for (let i = order.length - 1; i > 0; --i) { const j = Math.floor(random() * (i + 1)); [order[i], order[j]] = [order[j], order[i]]; }
    for (const i of order) {
      const now = Math.max(0, Math.min(C, alpha[i] + (1 - labels[i] * margin(i)) / norms[i])), step = (now - alpha[i]) * labels[i];
      if (step === 0) continue;
      alpha[i] = now;
      for (const [b, coef] of blocks[i]) for (let f = 0; f < size; ++f) weights[b][f] += step * coef * rows[i][f];
    }
    const norm = weights.reduce((total, v) => total + dot(v, v), 0);
    const losses = points.reduce((total, _, i) => total + Math.max(0, 1 - labels[i] * margin(i)), 0);
    const objective = norm / 2 + C * losses, gap = objective - (alpha.reduce((a, b) => a + b, 0) - norm / 2);
    const done = gap <= settings.tol * C * points.length || epoch === MOST_EPOCHS;
    if (done || epoch <= 20 || epoch % 10 === 0)
      yield { stage: "descent", epoch, objective, gap, model: { ...model, weights: weights.map((v) => v.slice()) } };
    if (done) return;
  }
}
if (typeof module !== "undefined") module.exports = { train, scoreOf, homeOf };
