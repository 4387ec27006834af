// Learning a gate together with its tiles, by minibatches.
//
// Model, for row x with z = P x (or z = x), the k tiles j that the gate chooses for z and their shares g_j, and outputs c:
//
//   s_jc = <w_jc, (x, bias)>,     f_c = sum_j g_j s_jc,     g = softmax of the gate's l_j(z) over the k chosen
//   loss = sum_c weight * max(0, 1 - y_c f_c)^2,     y_c = +1 for the row's class, else -1
//
// Gradients, with e_c = d loss / d f_c = -2 weight y_c max(0, 1 - y_c f_c):
//
//   d w_jc = e_c g_j (x, bias)
//   a_j = sum_c e_c s_jc,   d l_j = g_j (a_j - sum_i g_i a_i)        (through the softmax)
//
// and from d l_j on the gate knows its own: anchors in learner_anchors.hpp, a tree of splits in learner_tree.hpp. They
// give d z; d P = d z x^T.
//
// A batch costs about d p + (gate) + 2 k C d + d p multiply-adds a row: only the k chosen tiles are touched. The steps
// are Adam's, with decoupled weight decay on the tiles; a tile that a batch does not touch is left alone and decays for
// all its idle steps at once when it is next touched. Each parameter is updated by one thread that adds its rows in
// their order, so the bits do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "panels.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace svmosaic {

// A parameter array with Adam's two moments beside it.
template <class T>
struct Moving {
  T *value, *first, *second;
};

struct LearnerShape {
  int64_t n_features, n_components, n_tiles, n_outputs, width;
  bool projected, learn_gate;
};

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0.01, gate_rate = 0.3;
};

template <class T>
struct Learner {
  LearnerShape shape;
  AdamOptions options;
  Moving<T> tiles;       // [tile][output][feature + bias]
  Moving<T> gate;        // anchors [tile][component], or splits [tile - 1][component + bias]
  Moving<T> projection;  // [component][feature + bias]; the bias column stays zero
  Moving<double> log_tau;  // of anchors
  double sharpness;        // of splits
  double* idle_since;      // [tile]: sum of learning rates when the tile was last touched
  double* clock;           // {steps taken, sum of learning rates}

  int64_t tile_size() const { return shape.n_outputs * (shape.n_features + 1); }
};

// Numbers of entries by group, then the entries in the order of their groups: what lets one thread add up all that
// concerns one tile, in the order of the rows. Entries of group -1 are left out.
struct Sorted {
  std::vector<int64_t> start;  // of group j after sorting: end of group j - 1
  std::vector<int32_t> entry;

  void sort(const std::vector<int32_t>& group, int64_t n_groups) {
    start.assign(n_groups + 1, 0);
    entry.resize(group.size());
    for (int32_t j : group)
      if (j >= 0) ++start[j + 1];
    for (int64_t j = 0; j < n_groups; ++j) start[j + 1] += start[j];
    for (size_t q = 0; q < group.size(); ++q)
      if (group[q] >= 0) entry[start[group[q]]++] = static_cast<int32_t>(q);
  }
  int64_t begin_of(int64_t j) const { return j == 0 ? 0 : start[j - 1]; }
  int64_t end_of(int64_t j) const { return start[j]; }
};

// What a batch computes row by row, kept from one batch to the next.
template <class T>
struct Batch {
  int64_t n, width, n_outputs, p;
  std::vector<int64_t> row;     // data rows of the batch
  std::vector<T> z, dz;         // [row][component]
  std::vector<int32_t> tile;    // [row][a]
  std::vector<T> g, l, scores;  // [row][a], [row][a], [row][a][output]
  std::vector<T> e;             // [row][output]
  std::vector<double> losses;
  Sorted pairs;  // (row, a) by tile

  explicit Batch(const LearnerShape& s) : n(0), width(s.width), n_outputs(s.n_outputs), p(s.n_components) {}

  void take(const int32_t* rows, int64_t n_rows) {
    n = n_rows;
    row.assign(rows, rows + n);
    z.resize(n * p);
    dz.resize(n * p);
    tile.resize(n * width);
    g.resize(n * width);
    l.resize(n * width);
    scores.resize(n * width * n_outputs);
    e.resize(n * n_outputs);
    losses.resize(n);
  }
};

struct StepSizes {
  double rate, correction1, correction2, clock, inverse_n;
};

template <class T>
SVMOSAIC_CLONES void project_rows(const DenseRows<T>& x, const Panels<T>& projection, Batch<T>& batch, Piece piece) {
  const int64_t padded = projection.padded(), m = piece.end - piece.begin;
  std::vector<T> out(m * padded);
  std::vector<const T*> from(m);
  std::vector<T*> to(m);
  for (int64_t r = 0; r < m; ++r) {
    from[r] = x.data + batch.row[piece.begin + r] * x.stride;
    to[r] = out.data() + r * padded;
  }
  multiply_dense(from.data(), m, projection, to.data());
  for (int64_t r = 0; r < m; ++r) std::copy(to[r], to[r] + batch.p, batch.z.data() + (piece.begin + r) * batch.p);
}

template <class T>
SVMOSAIC_CLONES void project_rows(const SparseRows<T>& x, const Panels<T>& projection, Batch<T>& batch, Piece piece) {
  std::vector<T> out(projection.padded());
  for (int64_t r = piece.begin; r < piece.end; ++r) {
    multiply_sparse(x, batch.row[r], projection, out.data());
    std::copy(out.data(), out.data() + batch.p, batch.z.data() + r * batch.p);
  }
}

template <class T>
void copy_row(const DenseRows<T>& x, int64_t i, T* out) {
  std::copy(x.data + i * x.stride, x.data + i * x.stride + x.n_features, out);
}

template <class T>
void copy_row(const SparseRows<T>& x, int64_t i, T* out) {
  std::fill(out, out + x.n_features, T(0));
  for (int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) out[x.indices[p]] += x.data[p];
}

// Scores, loss and the gradients of scores and shares, for one row whose gate has been evaluated.
template <class T, class Rows>
inline void row_losses(const Learner<T>& model, const Rows& x, const int32_t* label, const double* weight, int64_t r,
                       Batch<T>& batch) {
  const int64_t k = batch.width, C = batch.n_outputs, stride = model.shape.n_features + 1, i = batch.row[r];
  const int32_t* tile = batch.tile.data() + r * k;
  const T* g = batch.g.data() + r * k;
  T *scores = batch.scores.data() + r * k * C, *e = batch.e.data() + r * C;
  std::fill(e, e + C, T(0));
  for (int64_t a = 0; a < k; ++a) {
    const T* w = model.tiles.value + tile[a] * model.tile_size();
    for (int64_t c = 0; c < C; ++c) {
      scores[a * C + c] = x.dot(i, w + c * stride);
      e[c] += g[a] * scores[a * C + c];
    }
  }
  double loss = 0;
  for (int64_t c = 0; c < C; ++c) {
    const double y = (C == 1 ? label[i] == 1 : label[i] == c) ? 1 : -1;
    const double slack = std::max(0.0, 1 - y * e[c]);
    loss += weight[i] * slack * slack;
    e[c] = static_cast<T>(-2 * weight[i] * y * slack);
  }
  batch.losses[r] = loss;
  if (!model.shape.learn_gate) return;
  T *l = batch.l.data() + r * k, mean = 0;
  for (int64_t a = 0; a < k; ++a) {
    l[a] = 0;
    for (int64_t c = 0; c < C; ++c) l[a] += e[c] * scores[a * C + c];
    mean += g[a] * l[a];
  }
  for (int64_t a = 0; a < k; ++a) l[a] = g[a] * (l[a] - mean);
}

// Forward and backward, for the rows of a piece.
template <class T, class Rows, class GatePart>
SVMOSAIC_CLONES void rows_forward(const Learner<T>& model, GatePart& gate, const Rows& x, const int32_t* label,
                                  const double* weight, const Panels<T>& projection, Piece piece, Batch<T>& batch) {
  if (model.shape.projected)
    project_rows(x, projection, batch, piece);
  else
    for (int64_t r = piece.begin; r < piece.end; ++r) copy_row(x, batch.row[r], batch.z.data() + r * batch.p);
  gate.code(model, piece, batch);
  for (int64_t r = piece.begin; r < piece.end; ++r) {
    row_losses(model, x, label, weight, r, batch);
    if (model.shape.learn_gate) gate.backward(model, r, batch);
  }
}

// One Adam step on n numbers, with their gradient's mean over the batch.
template <class T>
inline void adam_step(const Moving<T>& at, int64_t offset, const T* gradient, int64_t n, double rate, double keep,
                      const AdamOptions& o, double correction1, double correction2) {
  T *value = at.value + offset, *first = at.first + offset, *second = at.second + offset;
  const T b1 = static_cast<T>(o.beta1), b2 = static_cast<T>(o.beta2), kept = static_cast<T>(keep),
          step = static_cast<T>(rate / correction1), scale = static_cast<T>(1 / correction2),
          epsilon = static_cast<T>(o.epsilon);
  for (int64_t i = 0; i < n; ++i) {
    first[i] = b1 * first[i] + (1 - b1) * gradient[i];
    second[i] = b2 * second[i] + (1 - b2) * gradient[i] * gradient[i];
    value[i] = kept * value[i] - step * first[i] / (std::sqrt(second[i] * scale) + epsilon);
  }
}

// Gradients and steps of a piece of the tiles.
template <class T, class Rows>
SVMOSAIC_CLONES void update_tiles(const Learner<T>& model, const Rows& x, const Batch<T>& batch, const StepSizes& step,
                                  Piece piece) {
  const int64_t k = batch.width, C = batch.n_outputs, stride = model.shape.n_features + 1;
  std::vector<T> gradient(model.tile_size());
  for (int64_t j = piece.begin; j < piece.end; ++j) {
    const int64_t from = batch.pairs.begin_of(j), end = batch.pairs.end_of(j);
    if (from == end) continue;
    std::fill(gradient.begin(), gradient.end(), T(0));
    for (int64_t q = from; q < end; ++q) {
      const int64_t pair = batch.pairs.entry[q], r = pair / k;
      const T g = batch.g[pair] * static_cast<T>(step.inverse_n);
      for (int64_t c = 0; c < C; ++c) {
        const T e = batch.e[r * C + c];
        if (e != 0) x.add(batch.row[r], e * g, gradient.data() + c * stride);
      }
    }
    const double keep = std::exp(-model.options.decay * (step.clock - model.idle_since[j]));
    model.idle_since[j] = step.clock;
    adam_step(model.tiles, j * model.tile_size(), gradient.data(), model.tile_size(), step.rate, keep, model.options,
              step.correction1, step.correction2);
  }
}

template <class T, class Rows>
SVMOSAIC_CLONES void update_projection(const Learner<T>& model, const Rows& x, const Batch<T>& batch,
                                       const StepSizes& step, Piece piece) {
  const int64_t stride = model.shape.n_features + 1, p = model.shape.n_components, m = piece.end - piece.begin;
  std::vector<T> gradient(m * stride);
  // A row is read once for all components of the piece.
  for (int64_t r = 0; r < batch.n; ++r)
    for (int64_t q = 0; q < m; ++q) {
      const T d = batch.dz[r * p + piece.begin + q] * static_cast<T>(step.inverse_n);
      if (d != 0) x.add(batch.row[r], d, gradient.data() + q * stride);
    }
  for (int64_t q = 0; q < m; ++q) {
    gradient[q * stride + stride - 1] = 0;
    adam_step(model.projection, (piece.begin + q) * stride, gradient.data() + q * stride, stride,
              step.rate * model.options.gate_rate, 1.0, model.options, step.correction1, step.correction2);
  }
}

template <class T, class GatePart>
SVMOSAIC_CLONES void update_gate(const Learner<T>& model, const GatePart& gate, const Batch<T>& batch,
                                 const StepSizes& step, Piece piece) {
  gate.update(model, batch, step, piece);
}

// One batch: `rows` are the data rows in it. Returns the sum of the losses before the step.
template <class T, class Rows, class GatePart>
double learn_batch(const Learner<T>& model, GatePart& gate, Batch<T>& batch, const Rows& x, const int32_t* label,
                   const double* weight, const int32_t* rows, int64_t n, double rate, int n_threads) {
  const LearnerShape& s = model.shape;
  const AdamOptions& o = model.options;
  batch.take(rows, n);
  gate.take(model, n);
  Panels<T> projection;
  if (s.projected)
    projection = Panels<T>::pack(model.projection.value, s.n_components, s.n_features, s.n_features + 1);
  const int64_t n_pieces = std::max<int64_t>(1, n / 96);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    rows_forward(model, gate, x, label, weight, projection, Piece(n, n_pieces, t), batch);
  });
  batch.pairs.sort(batch.tile, s.n_tiles);
  if (s.learn_gate) gate.sort(batch);
  model.clock[0] += 1;
  model.clock[1] += rate;
  const StepSizes step{rate, 1 - std::pow(o.beta1, model.clock[0]), 1 - std::pow(o.beta2, model.clock[0]),
                       model.clock[1], 1.0 / n};
  // No part needs what another part's step changes.
  const int64_t tile_pieces = std::min<int64_t>(s.n_tiles, 64);
  const int64_t gate_pieces = s.learn_gate ? std::min<int64_t>(gate.n_units, 16) : 0;
  const int64_t projection_pieces = s.projected && s.learn_gate ? std::min<int64_t>(s.n_components, 4) : 0;
  parallel_for(projection_pieces + gate_pieces + tile_pieces, n_threads, [&](int64_t t) {
    if (t < projection_pieces)
      return update_projection(model, x, batch, step, Piece(s.n_components, projection_pieces, t));
    t -= projection_pieces;
    if (t < gate_pieces) return update_gate(model, gate, batch, step, Piece(gate.n_units, gate_pieces, t));
    update_tiles(model, x, batch, step, Piece(s.n_tiles, tile_pieces, t - gate_pieces));
  });
  if (s.learn_gate) gate.finish(model, step);
  double loss = 0;
  for (int64_t r = 0; r < n; ++r) loss += batch.losses[r];
  return loss;
}

}  // namespace svmosaic
