"use strict";
// ---- the trainer: the same problems that svmosaic's core solves, for points in the plane ------------------------------
//
//   minimize  1/2 ||V||^2 + sum_i cost_i loss(y_i f_i) ,   f_i = sum_a coef[i,a] <V[block[i,a]], (phi(x_i), 1)>
//
// by dual coordinate descent. Cells have a block each; clustered cells share one more; around anchors, rows share blocks.
// A learned gate first moves its anchors, and tiles with them, down the gradient. A mixture shares out the rows among
// its experts, solves for these, and so on (EM).

const MODELS = {
  linear: { name: "Linear SVM", tiles: false },
  kmeans: { name: "Cells: k-means, an SVM in each", tiles: true },
  clustered: { name: "Clustered: cells pulled toward a global SVM", tiles: true },
  local: { name: "Locally linear: anchors share each row", tiles: true },
  learned: { name: "Learned gate: anchors move", tiles: true },
  mixture: { name: "Mixture of experts, by EM", tiles: true },
};
const NEIGHBORS = 3, MOST_EPOCHS = 300, REACH = 3;
// Of learned gates, as in LearnedGateSVC, but that a step sees all rows.
const LEARNED_NEIGHBORS = 8, SHARPNESS = 4, STEPS = 320, STEPS_PER_FRAME = 5, RATE = 0.03, GATE_RATE = 0.3, DECAY = 0.01;
// Of mixtures, as in MultiTaskMixtureSVC without groups. Smaller shares than the last number are rounding.
const LABEL_WEIGHT = 5, FLOOR = 1e-3, EM_STEPS = 20, EM_TOL = 1e-4, NEARLY_NOTHING = 1e-10;

const sum = (values) => values.reduce((a, b) => a + b, 0);
const last = (values) => { let found; for (const value of values) found = value; return found; };
function dot(v, z) { let total = 0; for (let f = 0; f < z.length; ++f) total += v[f] * z[f]; return total; }
/** Add a multiple of one vector to another. */
function addTo(v, factor, z) { for (let f = 0; f < z.length; ++f) v[f] += factor * z[f]; }
const hinge = (margin) => Math.max(0, 1 - margin);
/** What a slack pays, the largest dual of a row with this cost, and the curvature of its dual. */
const LOSSES = {
  hinge: { paid: (slack) => slack, most: (cost) => cost, curvature: () => 0 },
  squaredHinge: { paid: (slack) => slack ** 2, most: () => Infinity, curvature: (cost) => 1 / (2 * cost) },
};

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

// ---- models: which tiles a point belongs to, and what they say ---------------------------------------------------------

/** Shares proportional to exp(logs), and the logarithm of what they were divided by. */
function softmax(logs) {
  const top = Math.max(...logs), parts = logs.map((l) => Math.exp(l - top)), total = sum(parts);
  return { shares: parts.map((part) => part / total), log: top + Math.log(total) };
}
/** The anchors nearest to a place: [squared distance, anchor], the nearest first. */
function neighbors(anchors, place, n) {
  return anchors.map((v, k) => [squared(place, v), k]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, n);
}
function sharedAround(anchors, place, n, scale) {
  const near = neighbors(anchors, place, n), { shares } = softmax(near.map(([d]) => -scale * d));
  return near.map(([, k], a) => [k, shares[a]]);
}
/** log of the prior and density of a Gaussian, from its axes. */
function logDensity({ mean, axes, variances, height }, point) {
  const away = [point[0] - mean[0], point[1] - mean[1]];
  return height - axes.reduce((total, axis, a) => total + dot(axis, away) ** 2 / variances[a], 0) / 2;
}
/** Where a learned gate sees a row of features. */
const projected = (model, z) => model.projection.map((p) => dot(p, z));

/** Tiles and weights of a point with features z. */
function codeOf(model, point, z) {
  switch (model.kind) {
    case "linear": return [[0, 1]];
    case "local": return sharedAround(model.centers, point, NEIGHBORS, model.scale);
    case "learned": return sharedAround(model.anchors, projected(model, z), LEARNED_NEIGHBORS, model.scale);
    case "mixture": return softmax(model.gaussians.map((one) => logDensity(one, point))).shares.map((share, k) => [k, share]);
    default: return [[nearest(model.centers, point), 1]];
  }
}
/** Blocks of the problem for tiles: clustered cells have a global block more. */
function blocksOf(model, code) {
  return model.kind === "clustered" ? [...code, [model.centers.length, 1]] : code;
}
/** What an expert of a mixture says: its likelihood of the first class less that of the second. */
const vote = (score) => Math.exp(-hinge(score)) - Math.exp(-hinge(-score));

/** The score of a point, and the tile that it belongs to most. */
function lookAt(model, point) {
  const z = featuresOf(model.map, point), code = codeOf(model, point, z), said = model.kind === "mixture" ? vote : (score) => score;
  return {
    score: blocksOf(model, code).reduce((total, [b, coef]) => total + coef * said(dot(model.weights[b], z)), 0),
    home: code.reduce((best, one) => (one[1] > best[1] ? one : best))[0],
  };
}
const scoreOf = (model, point) => lookAt(model, point).score;
const homeOf = (model, point) => lookAt(model, point).home;

// ---- tiles by descent --------------------------------------------------------------------------------------------------

/** Dual coordinate descent: weights, duals, objective and duality gap after each epoch. `alpha` are duals to start from. */
function* descent({ rows, labels, blocks, costs, nBlocks, loss = LOSSES.hinge, alpha = costs.map(() => 0) }, tol, random) {
  const weights = Array.from({ length: nBlocks }, () => new Float64Array(rows[0].length));
  const most = costs.map(loss.most), curvature = costs.map(loss.curvature);
  const norms = rows.map((z, i) => dot(z, z) * sum(blocks[i].map(([, coef]) => coef * coef)));
  const margin = (i) => blocks[i].reduce((total, [b, coef]) => total + coef * dot(weights[b], rows[i]), 0);
  const move = (i, step) => { for (const [b, coef] of blocks[i]) addTo(weights[b], step * labels[i] * coef, rows[i]); };
  const duals = alpha.map((a, i) => Math.min(a, most[i])), order = rows.map((_, i) => i), allowed = tol * sum(costs);
  duals.forEach((a, i) => { if (a > 0) move(i, a); });
  for (let epoch = 1; epoch <= MOST_EPOCHS; ++epoch) {
    for (let i = order.length - 1; i > 0; --i) { const j = Math.floor(random() * (i + 1)); [order[i], order[j]] = [order[j], order[i]]; }
    for (const i of order) {
      const wanted = duals[i] + (1 - labels[i] * margin(i) - curvature[i] * duals[i]) / (norms[i] + curvature[i]);
      const now = Math.max(0, Math.min(most[i], wanted)), step = now - duals[i];
      if (step === 0) continue;
      duals[i] = now;
      move(i, step);
    }
    const norm = sum(weights.map((v) => dot(v, v)));
    const objective = norm / 2 + sum(rows.map((_, i) => costs[i] * loss.paid(hinge(labels[i] * margin(i)))));
    const gap = objective - (sum(duals.map((a, i) => a - curvature[i] * a * a / 2)) - norm / 2);
    const done = gap <= allowed || epoch === MOST_EPOCHS;
    yield { epoch, objective, gap, done, weights: weights.map((v) => v.slice()), duals };
    if (done) return;
  }
}
/** The problem of the tiles of a model whose regions stay as they are. */
function tileProblem(model, { points, labels, rows }, C) {
  const blocks = rows.map((z, i) => blocksOf(model, codeOf(model, points[i], z)));
  return { rows, labels, blocks, costs: rows.map(() => C), nBlocks: (model.anchors || model.centers).length + 1 };
}
function* fitTiles(model, data, { C, tol }, random) {
  if (model.kind === "local") {
    const mean = sum(data.points.map((p) => neighbors(model.centers, p, 1)[0][0])) / data.points.length;
    model = { ...model, scale: mean > 0 ? 1 / mean : 1 };
  }
  for (const { epoch, objective, gap, done, weights } of descent(tileProblem(model, data, C), tol, random))
    if (done || epoch <= 20 || epoch % 10 === 0) yield { stage: "descent", epoch, objective, gap, model: { ...model, weights } };
}

// ---- learned gates -----------------------------------------------------------------------------------------------------

/** Anchors where k-means put the centers, seen through the straight terms of the features; zero tiles. */
function startGate(model, { rows }) {
  const hats = model.map === null || model.map[0].knots.length < 2 ? 0 : model.map[0].knots.length, size = rows[0].length;
  const projection = [0, 1 + hats].map((at) => Float64Array.from({ length: size }, (_, f) => (f === at ? 1 : 0)));
  const anchors = model.centers.map((c) => Float64Array.from(projected({ projection }, featuresOf(model.map, c))));
  const far = rows.map((z) => neighbors(anchors, projected({ projection }, z), LEARNED_NEIGHBORS).at(-1)[0]).sort((a, b) => a - b);
  const median = (far[(far.length - 1) >> 1] + far[far.length >> 1]) / 2;
  return { ...model, projection, anchors, scale: SHARPNESS / (median || 1), weights: anchors.map(() => new Float64Array(size)) };
}
/** The mean loss, the squared hinge, and its slopes in all that moves, the tiles that share a row held fixed. */
function slopesOf(model, { points, labels, rows }) {
  const zeros = (arrays) => arrays.map((values) => new Float64Array(values.length));
  const { weights, anchors, projection } = model;
  const found = { loss: 0, weights: zeros(weights), anchors: zeros(anchors), projection: zeros(projection), logScale: [0] };
  rows.forEach((z, i) => {
    const code = codeOf(model, points[i], z), scores = code.map(([k]) => dot(weights[k], z));
    const score = sum(code.map(([, share], a) => share * scores[a])), slack = hinge(labels[i] * score);
    found.loss += slack ** 2 / rows.length;
    if (slack === 0) return;
    const pull = -2 * labels[i] * slack / rows.length, place = projected(model, z), moved = [0, 0];
    code.forEach(([k, share], a) => {
      const anchor = anchors[k], slope = pull * share * (scores[a] - score);
      addTo(found.weights[k], pull * share, z);
      addTo(found.anchors[k], 2 * model.scale * slope, [place[0] - anchor[0], place[1] - anchor[1]]);
      addTo(moved, 2 * model.scale * slope, anchor);
      found.logScale[0] -= model.scale * slope * squared(place, anchor);
    });
    found.projection.forEach((slopes, p) => addTo(slopes, moved[p], z));
  });
  // The constant at the end of a row has no part in the projection: it would move all anchors alike.
  for (const slopes of found.projection) slopes[slopes.length - 1] = 0;
  return found;
}
/** The rate of a step: it rises to its peak over a quarter of the steps, and falls along a cosine. */
function rateAt(step) {
  const rise = STEPS / 4;
  if (step < rise) return RATE * (0.1 + 0.9 * step / rise);
  return RATE * (0.01 + 0.99 * (1 + Math.cos(Math.PI * (step - rise) / (STEPS - rise - 1))) / 2);
}
/** Adam on arrays, in place: a function that takes their slopes, the rate, and the share of themselves that they keep. */
function adam(arrays) {
  const moments = arrays.map((values) => [new Float64Array(values.length), new Float64Array(values.length)]);
  let steps = 0;
  return (slopes, rate, kept) => {
    steps += 1;
    arrays.forEach((values, a) => {
      const [first, second] = moments[a];
      for (let f = 0; f < values.length; ++f) {
        const slope = slopes[a][f];
        first[f] = 0.9 * first[f] + 0.1 * slope;
        second[f] = 0.999 * second[f] + 0.001 * slope * slope;
        values[f] = kept * values[f] - rate / (1 - 0.9 ** steps) * first[f] / (Math.sqrt(second[f] / (1 - 0.999 ** steps)) + 1e-8);
      }
    });
  };
}
/** The model as it is now, with a cross at the mean of the points of each tile: its anchor need not be in the plane. */
function snapshot(model, points) {
  const copied = (arrays) => arrays.map((values) => values.slice()), groups = model.anchors.map(() => []);
  for (const p of points) groups[homeOf(model, p)].push(p);
  const centers = groups.filter((group) => group.length).map((group) => [0, 1].map((f) => sum(group.map((p) => p[f])) / group.length));
  return { ...model, centers, weights: copied(model.weights), anchors: copied(model.anchors), projection: copied(model.projection) };
}
/** Gradient steps for gate and tiles; then the gate is fixed and the tiles are solved, for which alone C matters. */
function* learnGate(start, data, { C, tol }, random) {
  const model = startGate(start, data), logScale = [Math.log(model.scale)];
  const moveTiles = adam(model.weights), moveGate = adam([...model.anchors, ...model.projection, logScale]);
  for (let step = 0; step < STEPS; ++step) {
    const { loss, weights, anchors, projection, logScale: slope } = slopesOf(model, data);
    if (step % STEPS_PER_FRAME === 0) yield { stage: "gradient", step, loss, model: snapshot(model, data.points) };
    const rate = rateAt(step);
    moveTiles(weights, rate, Math.exp(-DECAY * rate));
    moveGate([...anchors, ...projection, slope], GATE_RATE * rate, 1);
    model.scale = Math.exp(logScale[0]);
  }
  const learned = snapshot(model, data.points);
  yield { stage: "gradient", step: STEPS, loss: slopesOf(model, data).loss, model: learned };
  const problem = { ...tileProblem(learned, data, C), loss: LOSSES.squaredHinge };
  const { epoch, objective, gap, weights } = last(descent(problem, tol, random));
  yield { stage: "polish", epoch, objective, gap, model: { ...learned, weights } };
}

// ---- mixtures, by EM ---------------------------------------------------------------------------------------------------
//
//   maximize  sum_i log sum_j prior_j N(x_i; mean_j, covariance_j) exp(-rho hinge(y_i f_ij))  -  rho / (2 C) sum_j ||w_j||^2

/** The Gaussian of points that have weights; no variance is below the floor. */
function gaussianOf(points, shares, floor) {
  const mass = sum(shares), average = (of) => sum(points.map((p, i) => shares[i] * of(p))) / mass;
  const mean = [0, 1].map((f) => average((p) => p[f]));
  const [xx, xy, yy] = [[0, 0], [0, 1], [1, 1]].map(([f, g]) => average((p) => (p[f] - mean[f]) * (p[g] - mean[g])));
  const middle = (xx + yy) / 2, apart = Math.hypot((xx - yy) / 2, xy), turn = Math.atan2(2 * xy, xx - yy) / 2;
  const variances = [middle + apart, middle - apart].map((v) => Math.max(v, floor));
  const height = Math.log(mass / points.length) - Math.log(2 * Math.PI) - sum(variances.map(Math.log)) / 2;
  return { mean, axes: [[Math.cos(turn), Math.sin(turn)], [-Math.sin(turn), Math.cos(turn)]], variances, height };
}
/** E-step: the objective, and the experts with the share of each row that they answer for. */
function sharedOut(experts, { points, labels, rows }, C) {
  const of = rows.map((z, i) => softmax(experts.map(({ gaussian, weights }) =>
    logDensity(gaussian, points[i]) - LABEL_WEIGHT * hinge(labels[i] * dot(weights, z)))));
  const penalty = LABEL_WEIGHT / (2 * C) * sum(experts.map(({ weights }) => dot(weights, weights)));
  return {
    objective: sum(of.map(({ log }) => log)) - penalty,
    experts: experts.map((expert, k) => ({ ...expert, shares: of.map(({ shares }) => shares[k]) })),
  };
}
/** M-step: the Gaussians and SVMs of the shares. An SVM is replaced by a better one only, so the objective never falls. */
function improved(experts, { points, labels, rows }, { C, tol }, floor, random) {
  const alive = experts.filter(({ shares }) => sum(shares) > NEARLY_NOTHING * points.length);
  const pairs = alive.flatMap(({ shares }, k) => rows.map((_, i) => [i, k]).filter(([i]) => shares[i] > NEARLY_NOTHING));
  const { weights, duals } = last(descent({
    rows: pairs.map(([i]) => rows[i]), labels: pairs.map(([i]) => labels[i]), blocks: pairs.map(([, k]) => [[k, 1]]),
    costs: pairs.map(([i, k]) => C * alive[k].shares[i]), alpha: pairs.map(([i, k]) => alive[k].duals[i]), nBlocks: alive.length,
  }, tol, random));
  const after = alive.map(() => new Float64Array(rows.length));
  pairs.forEach(([i, k], at) => { after[k][i] = duals[at]; });
  return alive.map(({ shares, weights: before }, k) => {
    const objective = (v) => dot(v, v) / 2 + C * sum(rows.map((z, i) => shares[i] * hinge(labels[i] * dot(v, z))));
    const better = objective(weights[k]) <= objective(before) ? weights[k] : before;
    return { shares, gaussian: gaussianOf(points, shares, floor), weights: better, duals: after[k] };
  });
}
function* fitMixture(model, data, settings, random) {
  const { points, rows } = data, homes = points.map((p) => nearest(model.centers, p));
  const floor = FLOOR * (sum(gaussianOf(points, points.map(() => 1), 0).variances) / 2 || 1);
  const cells = model.centers.map((_, k) => ({
    shares: homes.map((home) => (home === k ? 1 : 0)), weights: new Float64Array(rows[0].length), duals: new Float64Array(rows.length),
  }));
  const step = (experts) => sharedOut(improved(experts, data, settings, floor, random), data, settings.C);
  let now = step(cells), settled = false;
  for (let steps = 0; ; ++steps) {
    const gaussians = now.experts.map(({ gaussian }) => gaussian), weights = now.experts.map((expert) => expert.weights);
    const centers = gaussians.map(({ mean }) => mean);
    yield { stage: "EM", step: steps, objective: now.objective, model: { ...model, centers, gaussians, weights } };
    if (settled || steps === EM_STEPS) return;
    const next = step(now.experts), gain = next.objective - now.objective;
    if (gain < 0) return;  // by rounding
    settled = gain <= EM_TOL * Math.abs(next.objective);
    now = next;
  }
}

const TRAINERS = { learned: learnGate, mixture: fitMixture };
/** Frames of a fit: models with a stage, and what is known of the objective there. */
function* train(points, labels, settings) {
  const { kind, tiles, pieces, seed = 0 } = settings, random = randomOf(seed);
  const map = pieces > 1 ? fitPieces(points, pieces) : null, rows = points.map((p) => featuresOf(map, p));
  const model = { kind, map, centers: [], scale: 1, weights: [] };
  if (MODELS[kind].tiles) {
    for (const centers of placed(points, tiles, random)) {
      model.centers = centers;
      yield { stage: "k-means", model: { ...model, kind: "kmeans", weights: centers.map(() => new Float64Array(rows[0].length)) } };
    }
  }
  yield* (TRAINERS[kind] || fitTiles)(model, { points, labels, rows }, settings, random);
}
if (typeof module !== "undefined") module.exports = { train, scoreOf, homeOf, featuresOf, slopesOf };
