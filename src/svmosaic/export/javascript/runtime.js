// What follows is the same in every file: it computes what MODEL describes, in double precision.

/** The columns that a row has, in order: their names, and whether each holds a "number" or "text". */
export const columns = MODEL.columns;

/** The classes, in the order of predictProba; null for a model that predicts values. */
export const classes = MODEL.classes;

/** What each score is for: the second of two classes, else one class or one target each. */
export const outputs = MODEL.outputs;

/**
 * The class of a row, or its value; of several targets, an array of values.
 * @param row an object keyed by the columns, or an array in their order; null for a missing value
 */
export function predict(row) {
  return answerOf(scoresOf(prepared(row)));
}

/** The scores of a row, one per output; of two classes, a positive score is for the second. Without classes, the values. */
export function scores(row) {
  return scoresOf(prepared(row));
}

/** The probabilities of the classes, in their order. */
export function predictProba(row) {
  if (MODEL.calibration === null)
    throw new Error("this model has no probabilities: fit it with calibration=\"temperature\", \"sigmoid\" or \"isotonic\"");
  return calibrated(scoresOf(prepared(row)));
}

/** The lower and the upper end of the interval of a row, in units of the value. */
export function predictInterval(row) {
  if (MODEL.interval === null) throw new Error("this model has no intervals: fit MosaicRegressor with quantiles=(0.05, 0.95), say");
  const quantiles = sumsOf(MODEL.interval, prepared(row));
  const low = Math.min(...quantiles) - MODEL.interval.margin;
  const high = Math.max(...quantiles) + MODEL.interval.margin;
  const middle = 0.5 * (low + high);
  return [Math.min(low, middle), Math.max(high, middle)];
}

/**
 * Why a row gets its scores.
 *
 * contributions[output][column] and intercept[output] add up to scores[output]. If scores are not sums over columns,
 * contributions and intercept are null, and reason says why. tiles lists the tiles that the row belongs to, with the
 * weight, the margins and what each adds to the scores (votes).
 */
export function explain(row) {
  const x = prepared(row);
  const found = scoresOf(x);
  const answer = {
    label: answerOf(found),
    scores: found,
    probabilities: MODEL.calibration === null ? null : calibrated(found),
    contributions: null,
    intercept: null,
    reason: MODEL.unexplained,
    tiles: [],
  };
  if (MODEL.form !== null) return answer;
  const { seen, tiles } = tilesOf(MODEL.mosaic, x);
  for (const [tile, weight, margins] of tiles) {
    const votes = margins.map((margin) => weight * LINKS[MODEL.mosaic.link](margin));
    answer.tiles.push({ tile, weight, margins, votes });
  }
  if (MODEL.unexplained !== null) return answer;
  answer.intercept = Array.from(MODEL.mosaic.offset);
  answer.contributions = outputs.map((_, c) => {
    const sums = columns.map(() => 0);
    for (const { tile, weight } of answer.tiles) {
      answer.intercept[c] += weight * MODEL.mosaic.intercept[tile * outputs.length + c];
      MODEL.mosaic.banks.forEach((bank, b) => {
        if (placeOf(bank, tile) < 0) return;
        const start = (placeOf(bank, tile) * outputs.length + c) * seen[b].length;
        seen[b].forEach((value, f) => {
          const feature = bank.ramps === null ? f : bank.ramps.column[f];
          sums[MODEL.source[feature]] += weight * bank.coef[start + f] * value;
        });
      });
    }
    return Object.fromEntries(columns.map((column, at) => [column.name, sums[at]]));
  });
  return answer;
}

// ---- rows ---------------------------------------------------------------------------------------------------------

function prepared(row) {
  const values = Array.isArray(row) || ArrayBuffer.isView(row) ? fromArray(row) : fromObject(row);
  const cells = values.map((value, at) => CELLS[columns[at].kind](value, at));
  const x = Float64Array.from(MODEL.source, (at, f) => feature(f, cells[at], at));
  for (const step of MODEL.steps)
    for (let f = 0; f < x.length; ++f) {
      const value = Number.isNaN(x[f]) && step.fill[f] !== null ? step.fill[f] : x[f];
      x[f] = (value - step.center[f]) * step.factor[f];
    }
  const missing = x.findIndex(Number.isNaN);
  if (missing >= 0) throw new Error(`${named(MODEL.source[missing])} is missing, and the model has nothing to put in its place`);
  return x;
}

function feature(f, cell, at) {
  const { form, text, otherwise } = MODEL.features[f];
  if (form === "value") return cell;
  if (form === "missing") return Number.isNaN(cell) || cell === "" || cell === MODEL.missing[at] ? 1 : 0;
  if (form === "category") return cell === text ? 1 : 0;
  if (form !== "table") return partOfDate(form, cell);
  return TABLES[f].has(cell) ? TABLES[f].get(cell) : otherwise;
}

const TABLES = MODEL.features.map(({ entries }) => (entries === undefined ? null : new Map(entries)));

/** Of the days since 1970-01-01: months and days count from 1, weekdays from 0 (Monday). */
function partOfDate(part, days) {
  if (part === "days" || Number.isNaN(days)) return days;
  const whole = Math.floor(days);
  if (part === "hour") return (days - whole) * 24;
  if (part === "weekday") return (((whole + 3) % 7) + 7) % 7;
  const date = new Date(whole * 86400000);
  return part === "month" ? date.getUTCMonth() + 1 : date.getUTCDate();
}

function fromArray(row) {
  if (row.length !== columns.length) throw new Error(`a row has ${columns.length} values, got ${row.length}`);
  return Array.from(row);
}

function fromObject(row) {
  if (row === null || typeof row !== "object")
    throw new Error(`a row must be an object keyed by the columns, or an array, got ${row === null ? "null" : typeof row}`);
  const absent = columns.filter((column) => !Object.hasOwn(row, column.name)).map((column) => column.name);
  if (absent.length) throw new Error(`the row lacks ${absent.join(", ")}; pass null for a missing value`);
  return columns.map((column) => row[column.name]);
}

const named = (at) => `column ${JSON.stringify(columns[at].name)}`;

// Text in a column of numbers that stands for a missing one, unless the file that the model was trained on has its own.
const MISSING_NUMBERS = [
  "?", "-", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
  "NULL", "NaN", "None", "n/a", "nan", "null",
];
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const isMissingNumber = (text) => text === "" || (MODEL.missingTexts ?? MISSING_NUMBERS).includes(text);

function number(value, at) {
  if (value === null || value === undefined || Number.isNaN(value)) return NaN;
  let found = typeof value === "boolean" ? Number(value) : value;
  if (typeof value === "string") {
    const written = value.trim();
    if (isMissingNumber(written)) return NaN;
    found = DECIMAL.test(written) ? Number(written) : null; // Number itself takes hexadecimal digits, and blanks for zero
  }
  if (typeof found !== "number" || !Number.isFinite(found))
    throw new Error(`${named(at)} must be a finite number or null, got ${JSON.stringify(value) ?? String(value)}`);
  return found;
}

function text(value, at) {
  let found = "";
  if (typeof value === "string") found = MODEL.missingTexts === null ? value : value.replace(/^[ \t]+|[ \t]+$/g, "");
  else if (typeof value === "number" && !Number.isNaN(value)) found = written(value);
  else if (typeof value === "boolean") found = value ? "True" : "False";
  else if (value !== null && value !== undefined && !Number.isNaN(value))
    throw new Error(`${named(at)} must be text or null, got ${typeof value}`);
  const isMissing = found === "" || (MODEL.missingTexts !== null && MODEL.missingTexts.includes(found));
  return isMissing && MODEL.missing[at] !== null ? MODEL.missing[at] : found;
}

/** A number as Python writes it, which is how categories that were numbers are called. */
function written(value) {
  const [digits, power] = value.toExponential().split("e").map((part, k) => (k ? Number(part) : part));
  if (Number.isInteger(value) || (power >= -4 && power < 16)) return String(value);
  return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** Days since 1970-01-01 of a Date (its UTC), of text such as 2026-01-31 or 2026-01-31 12:00, or of the days themselves. */
function days(value, at) {
  if (value instanceof Date) return value.getTime() / 86400000;
  if (typeof value !== "string" || value.trim() === "") return number(value, at);
  const parts = ISO.exec(value.trim());
  const [year, month, day, hour, minute, second] = parts === null ? [] : parts.slice(1, 7).map((part) => Number(part ?? 0));
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day); // Date.parse would take the 31st of February for a day in March
  if (parts === null || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hour > 23 || minute > 59 || second > 59)
    throw new Error(`${named(at)} must be a date or null, got ${JSON.stringify(value)}`);
  const microseconds = Number((parts[7] ?? "").padEnd(6, "0").slice(0, 6));
  return date.getTime() / 86400000 + ((hour * 60 + minute) * 60 + second + microseconds / 1e6) / 86400;
}

const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?$/;

const CELLS = { number, text, date: days };

// ---- scores -------------------------------------------------------------------------------------------------------

function scoresOf(x) {
  return MODEL.form !== null ? FORMS[MODEL.form.kind](MODEL.form, x) : sumsOf(MODEL.mosaic, x);
}

/** The sums over the tiles of a mosaic: that of the scores, or that of the quantiles. */
function sumsOf(mosaic, x) {
  const sums = Array.from(mosaic.offset);
  for (const [, weight, margins] of tilesOf(mosaic, x).tiles)
    margins.forEach((margin, c) => {
      sums[c] += weight * LINKS[mosaic.link](margin);
    });
  return sums;
}

/** The row as the tiles of each bank see it, and [tile, weight, margins] of those that it belongs to. */
function tilesOf(mosaic, x) {
  const scaled = mosaic.scaling === null ? x : scale(mosaic.scaling, x);
  const code = GATES[mosaic.gate.kind](mosaic.gate, scaled);
  const seen = mosaic.banks.map(({ ramps }) => bent(ramps, scaled));
  const tiles = [];
  for (let a = 0; a < code.tile.length; ++a)
    if (code.weight[a] !== 0) tiles.push([code.tile[a], code.weight[a], marginsOf(mosaic, code.tile[a], seen)]);
  return { seen, tiles };
}

function marginsOf(mosaic, tile, seen) {
  const nOutputs = mosaic.offset.length;
  return Array.from({ length: nOutputs }, (_, c) => {
    let margin = 0;
    mosaic.banks.forEach((bank, b) => {
      const place = placeOf(bank, tile);
      if (place >= 0) margin += dot(bank.coef, (place * nOutputs + c) * seen[b].length, seen[b]);
    });
    return margin + mosaic.intercept[tile * nOutputs + c];
  });
}

/** The index of a tile's weights in a bank, or -1 for a tile that has none there. */
const placeOf = (bank, tile) => (bank.place === null ? tile : bank.place[tile]);

function dot(table, start, x) {
  let total = 0;
  for (let f = 0; f < x.length; ++f) total += table[start + f] * x[f];
  return total;
}

const LINKS = {
  identity: (s) => s,
  vote: (s) => Math.exp(-Math.max(0, 1 - s)) - Math.exp(-Math.max(0, 1 + s)),
  posterior: (s) => {
    const yes = Math.exp(-Math.max(0, 1 - s));
    const no = Math.exp(-Math.max(0, 1 + s));
    return (yes - no) / (yes + no);
  },
};

const scale = ({ center, factor }, x) => x.map((value, f) => (value - (center === null ? 0 : center[f])) * factor[f]);

/** The features that piecewise-linear tiles are linear in; the row itself for other tiles. */
function bent(ramps, x) {
  if (ramps === null) return x;
  const { column, center, factor, low, high } = ramps;
  return Float64Array.from(column, (f, k) => Math.min(Math.max((x[f] - center[k]) * factor[k], low[k]), high[k]));
}

// ---- gates: { tile, weight } of a row -------------------------------------------------------------------------------

const GATES = {
  SingleCell: () => ({ tile: [0], weight: [1] }),

  DistanceGate(gate, x) {
    const z = x.map((value, f) => value - gate.mean[f]);
    const close = gate.halfNorms.map((half, j) => dot(gate.centers, j * z.length, z) - half);
    // Sorting is stable: of equals, the first.
    const tile = close.map((_, j) => j).sort((a, b) => close[b] - close[a]).slice(0, gate.width);
    const weight = CODINGS[gate.coding](gate, z, tile, (a, f) => gate.centers[tile[a] * z.length + f]);
    const total = gate.coding === "kernel" ? 1 : sum(weight);
    return { tile, weight: weight.map((w, a) => (w / total) * (gate.factor === null ? 1 : gate.factor[tile[a]])) };
  },

  ProjectedGate(gate, x) {
    const z = Float64Array.from({ length: gate.projection.length / x.length }, (_, q) => dot(gate.projection, q * x.length, x));
    return GATES[gate.inner.kind](gate.inner, z);
  },

  RampGate: (gate, x) => GATES[gate.inner.kind](gate.inner, bent(gate.ramps, x)),

  ScaledGate: (gate, x) => GATES[gate.inner.kind](gate.inner, scale(gate, x)),

  SeveralGates(gate, x) {
    const together = { tile: [], weight: [] };
    let first = 0;
    gate.gates.forEach((inner, m) => {
      const code = GATES[inner.kind](inner, x);
      for (const tile of code.tile) together.tile.push(first + tile);
      for (const weight of code.weight) together.weight.push(weight * gate.factors[m]);
      first += inner.nTiles;
    });
    return together;
  },

  SoftmaxGate(gate, x) {
    const z = x.map((value, f) => value - gate.origin[f]);
    const { parent, leaf } = gate;
    const node = parent.map((_, a) => gate.offset[a] + dot(gate.plane, a * z.length, z) + (gate.inside ? gate.logPrior[a] : 0));
    for (let first = 0, end; first < node.length; first = end) {
      for (end = first; end < node.length && parent[end] === parent[first]; ) ++end;
      const shares = softmax(node.slice(first, end));
      const above = parent[first] < 0 ? 1 : node[parent[first]];
      for (let a = first; a < end; ++a) node[a] = shares[a - first] * above * (gate.inside ? 1 : Math.exp(gate.logPrior[a]));
    }
    return { tile: leaf.map((_, j) => j), weight: leaf.map((a) => node[a]) };
  },

  GaussianGate(gate, x) {
    const joint = logJoint(gate, x);
    return { tile: joint.map((_, j) => j), weight: softmax(joint) };
  },

  RuleGate(gate, x) {
    const tile = Array.from(gate.roots, (root) => {
      let node = root;
      while (gate.feature[node] >= 0) node = gate.left[node] + (x[gate.feature[node]] > gate.threshold[node] ? 1 : 0);
      return gate.left[node];
    });
    return { tile, weight: tile.map(() => 1) };
  },
};

const CODINGS = {
  nearest: () => [1],

  softmax(gate, z, tile, center) {
    const logits = tile.map((j, a) => {
      // |z - c|^2 less that of the first center, which keeps its digits far from all of them
      let beyond = 0;
      for (let f = 0; f < z.length; ++f) beyond += (z[f] - center(0, f) + (z[f] - center(a, f))) * (center(0, f) - center(a, f));
      return (gate.logPrior === null ? 0 : gate.logPrior[j]) - gate.scale * beyond;
    });
    return softmax(logits);
  },

  inverse(gate, z, tile, center) {
    const squared = tile.map((_, a) => inner(z, a, a, center));
    const smallest = -largest(squared.map((s) => -s));
    // on a center it takes all; ties share
    return squared.map((s) => (smallest > 0 ? Math.sqrt(smallest / s) : s > 0 ? 0 : 1));
  },

  kernel: (gate, z, tile, center) => tile.map((_, a) => Math.exp(-gate.scale * inner(z, a, a, center))),

  llc: (gate, z, tile, center) => rebuilt(gate, z, tile, center, true),
  lle: (gate, z, tile, center) => rebuilt(gate, z, tile, center, false),
};

/** The weights that rebuild z from its centers: (D D^T + ridge) w = 1, by elimination. */
function rebuilt(gate, z, tile, center, local) {
  const n = tile.length;
  const system = tile.map((_, a) => tile.map((_, b) => inner(z, a, b, center)));
  const squared = system.map((line, a) => line[a]);
  const mean = sum(squared) / n;
  const farthest = largest(squared);
  const weight = tile.map(() => 1);
  for (let a = 0; a < n; ++a) {
    let ridge = gate.scale * mean;
    if (local && farthest > 0) ridge *= Math.exp(Math.sqrt(squared[a] / farthest) - 1) ** 2;
    system[a][a] += ridge > 0 ? ridge : 1e-12;
  }
  for (let k = 0; k < n; ++k)
    for (let a = k + 1; a < n; ++a) {
      const share = system[a][k] / system[k][k];
      for (let b = k; b < n; ++b) system[a][b] -= share * system[k][b];
      weight[a] -= share * weight[k];
    }
  for (let k = n - 1; k >= 0; --k) {
    for (let b = k + 1; b < n; ++b) weight[k] -= system[k][b] * weight[b];
    weight[k] /= system[k][k];
  }
  return weight;
}

function inner(z, a, b, center) {
  let total = 0;
  for (let f = 0; f < z.length; ++f) total += (z[f] - center(a, f)) * (z[f] - center(b, f));
  return total;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const largest = (values) => values.reduce((top, value) => Math.max(top, value), -Infinity);

function softmax(logits) {
  const top = largest(logits);
  const shares = Array.from(logits, (logit) => Math.exp(logit - top));
  const total = sum(shares);
  return shares.map((share) => share / total);
}

// ---- densities ------------------------------------------------------------------------------------------------------

/** logWeight_j - |F_j^T (x - mu_j)|^2 / 2 */
function logJoint(form, x) {
  const d = x.length;
  return form.logWeight.map((height, j) => {
    let squared = 0;
    for (let q = 0; q < d; ++q) {
      let white = 0;
      if (form.covariance === "full")
        for (let f = 0; f < d; ++f) white += form.factors[(j * d + f) * d + q] * (x[f] - form.means[j * d + f]);
      else white = form.factors[form.covariance === "diag" ? j * d + q : j] * (x[q] - form.means[j * d + q]);
      squared += white * white;
    }
    return height - 0.5 * squared;
  });
}

/** log p(k) p(x|k) */
function classLogJoint(form, x) {
  const joint = logJoint(form, x);
  return classes.map((_, k) => {
    const mine = joint.filter((_, j) => form.owner[j] === k);
    const top = largest(mine);
    return top + Math.log(sum(mine.map((value) => Math.exp(value - top))));
  });
}

const contrast = (values) => (values.length === 2 ? [values[1] - values[0]] : values);

const FORMS = {
  Gaussians: (form, x) => contrast(classLogJoint(form, x)),

  Fusion(form, x) {
    if (form.weight === 0) return FORMS.Gaussians(form.densities, x);
    const kernels = form.gamma.map((gamma, i) => {
      let squared = 0;
      for (let f = 0; f < x.length; ++f) squared += (x[f] - form.centers[i * x.length + f]) ** 2;
      return Math.exp(-gamma * squared);
    });
    const machine = form.intercept.map((intercept, c) => intercept + dot(form.coef, c * kernels.length, kernels));
    if (form.weight === 1) return machine;
    const joint = classLogJoint(form.densities, x);
    const top = largest(joint);
    const height = Math.exp(Math.min(top + form.logRatio, 700));
    const densities = contrast(joint.map((value) => height * Math.exp(value - top)));
    return machine.map((score, c) => form.weight * score + (1 - form.weight) * densities[c]);
  },
};

// ---- decisions ------------------------------------------------------------------------------------------------------

function answerOf(found) {
  if (classes === null) return MODEL.oneValue ? found[0] : found;
  return classes[winner(found)];
}

function winner(found) {
  if (MODEL.calibration === null && found.length === 1) return found[0] > 0 ? 1 : 0;
  const values = MODEL.calibration === null ? found : calibrated(found);
  return values.reduce((best, value, c) => (value > values[best] ? c : best), 0);
}

const calibrated = (found) => CALIBRATIONS[MODEL.calibration.kind](MODEL.calibration, found);

function sigmoid(s) {
  const small = Math.exp(-Math.abs(s));
  return (s >= 0 ? 1 : small) / (1 + small);
}

/** Probabilities of the classes from one per output. */
function normalized(each) {
  if (each.length === 1) return [1 - each[0], each[0]];
  const total = sum(each);
  return each.map((p) => (total > 0 ? p / total : 1 / each.length));
}

function interpolated(s, x, y) {
  let low = 0;
  let high = x.length - 1;
  if (s <= x[low]) return y[low];
  if (s >= x[high]) return y[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] <= s) low = middle;
    else high = middle;
  }
  return y[low] + (y[high] - y[low]) * ((s - x[low]) / (x[high] - x[low]));
}

const CALIBRATIONS = {
  Temperature: ({ beta }, found) =>
    found.length === 1 ? normalized([sigmoid(2 * beta * found[0])]) : softmax(found.map((s) => beta * s)),
  // The largest log-odds of a row are kept within bounds, so that sigmoids do not tie.
  Odds: ({ slope, offset, bounds }, found) => {
    const odds = found.map((s) => slope * s + offset);
    const top = Math.max(...odds);
    const moved = Math.min(Math.max(top, bounds[0]), bounds[1]);
    return normalized(odds.map((t) => sigmoid(t - top + moved)));
  },
  Sigmoid: ({ slope, offset }, found) => normalized(found.map((s, c) => sigmoid(-(slope[c] * s + offset[c])))),
  Isotonic: ({ x, y, tieBreak }, found) =>
    normalized(found.map((s, c) => interpolated(s, x[c], y[c]) + (found.length === 1 ? 0 : tieBreak * sigmoid(s)))),
  Posterior: (_, found) => normalized(found.map((s) => 0.5 * (1 + s))),
};
