// Learning one or several gates together with their tiles, by minibatches.
//
// Model, for row x, gates m = 1..M with z_m = P_m x (or z_m = x), the k tiles j that gate m chooses for z_m and their
// shares g_mj, and outputs c:
//
//   s_jc = <w_jc, (phi, bias)>,     f_c = sum_m sum_j g_mj s_jc / sqrt(M),     g_m = softmax of l_mj(z_m) over the k chosen
//
// phi is x, with some of its features set to zero by dropout (learner_dropout.hpp); the gates see all of x. Gradients,
// with e_c = d loss / d f_c / sqrt(M) from learner_losses.hpp:
//
//   d w_jc = e_c g_mj (phi, bias)
//   a_j = sum_c e_c s_jc,   d l_mj = g_mj (a_j - sum_i g_mi a_i)        (through the softmax of gate m)
//
// and from d l on the gates know their own (learner_anchors.hpp). They give d z; d P = d z x^T.
//
// A batch costs about M (2 d p + (gate) + 2 k C d) multiply-adds per row: only the chosen tiles are touched. The steps
// are Adam's, with decoupled weight decay on the tiles; a tile that a batch does not touch is left alone and decays for
// all its idle steps at once when it is next touched. Each parameter is updated by one thread that adds its rows in
// their order, so the bits do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "learner_dropout.hpp"
#include "learner_losses.hpp"
#include "panels.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace svmosaic {

// A parameter array with Adam's two moments.
template <class T>
struct Moving {
  T *value, *first, *second;
};

struct LearnerShape {
  int64_t n_features, n_components, n_outputs, width;  // components and width of each gate
  bool projected;
  std::vector<int64_t> first_tile;  // of each gate, and the number of tiles

  int64_t n_gates() const { return static_cast<int64_t>(first_tile.size()) - 1; }
  int64_t n_tiles() const { return first_tile.back(); }
  int64_t n_pairs() const { return n_gates() * width; }            // (tile, share) per row
  int64_t n_coordinates() const { return n_gates() * n_components; }  // all z of a row
};

struct LearnerOptions {
  LearnerLoss loss = LearnerLoss::squared_hinge;
  std::vector<double> loss_parameter;  // one per output
  Dropout dropout;
  double decay = 0.01, gate_rate = 0.3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

template <class T>
struct Learner {
  LearnerShape shape;
  LearnerOptions options;
  Moving<T> tiles;         // [tile][output][feature + bias]
  Moving<T> anchors;       // [tile][component]
  Moving<T> projection;    // [gate][component][feature + bias]; the bias column stays zero
  Moving<double> log_tau;  // [gate]
  double* idle_since;      // [tile]: sum of learning rates when the tile was last touched
  double* clock;           // {steps taken, sum of learning rates}

  int64_t tile_size() const { return shape.n_outputs * (shape.n_features + 1); }
};

// What the rows should be: the position of a class in the only column, or one number per output.
template <class T>
struct LearnerTarget {
  const T* value;
  int64_t n_columns;
  const double* weight;
};

// Numbers of entries by group, then the entries in the order of their groups: what lets one thread add up all that
// concerns one tile, in the order of the rows.
struct Sorted {
  std::vector<int64_t> start;  // of group j after sorting: end of group j - 1
  std::vector<int32_t> entry;

  void sort(const std::vector<int32_t>& group, int64_t n_groups) {
    start.assign(n_groups + 1, 0);
    entry.resize(group.size());
    for (int32_t j : group) ++start[j + 1];
    for (int64_t j = 0; j < n_groups; ++j) start[j + 1] += start[j];
    for (size_t q = 0; q < group.size(); ++q) entry[start[group[q]]++] = static_cast<int32_t>(q);
  }
  int64_t begin_of(int64_t j) const { return j == 0 ? 0 : start[j - 1]; }
  int64_t end_of(int64_t j) const { return start[j]; }
};

// What a batch computes row by row, kept from one batch to the next.
template <class T>
struct Batch {
  int64_t n = 0;
  const int32_t* row = nullptr;  // data rows of the batch
  uint32_t dropout_key = 0;
  std::vector<T> z, dz;         // [row][gate][component]
  std::vector<int32_t> tile;    // [row][pair], the pairs of a gate side by side
  std::vector<T> g, l, scores;  // [row][pair], [row][pair], [row][pair][output]
  std::vector<T> e;             // [row][output]
  std::vector<double> losses;
  Sorted pairs;  // (row, pair) by tile

  void take(const LearnerShape& s, const int32_t* rows, int64_t n_rows) {
    n = n_rows;
    row = rows;
    z.resize(n * s.n_coordinates());
    dz.resize(n * s.n_coordinates());
    tile.resize(n * s.n_pairs());
    g.resize(n * s.n_pairs());
    l.resize(n * s.n_pairs());
    scores.resize(n * s.n_pairs() * s.n_outputs);
    e.resize(n * s.n_outputs);
    losses.resize(n);
  }
};

// Rows of a task: whole groups of the rows that a product takes at a time, and so few that the usual batches of some
// hundred rows feed all threads.
constexpr int64_t kRowsPerTask = 2 * kRowsAtOnce;
// Components whose projections are learned by one task.
constexpr int64_t kComponentsPerTask = 2;

struct StepSizes {
  double rate, correction1, correction2, clock, inverse_n;
};

// z of the rows of a piece, for all gates at once.
template <class T>
void project_rows(const Learner<T>&, const DenseRows<T>& x, const Panels<T>& projection, Batch<T>& batch, Piece piece) {
  const int64_t padded = projection.padded(), m = piece.end - piece.begin;
  std::vector<T> out(m * padded);
  std::vector<const T*> from(m);
  std::vector<T*> to(m);
  for (int64_t r = 0; r < m; ++r) {
    from[r] = x.data + batch.row[piece.begin + r] * x.stride;
    to[r] = out.data() + r * padded;
  }
  multiply_dense(from.data(), m, projection, to.data());
  for (int64_t r = 0; r < m; ++r)
    std::copy(to[r], to[r] + projection.n, batch.z.data() + (piece.begin + r) * projection.n);
}

template <class T>
void project_rows(const Learner<T>&, const SparseRows<T>& x, const Panels<T>& projection, Batch<T>& batch, Piece piece) {
  std::vector<T> out(projection.padded());
  for (int64_t r = piece.begin; r < piece.end; ++r) {
    T* to = out.data();
    multiply_sparse(x, 0, batch.row + r, 1, projection, &to);
    std::copy(out.data(), out.data() + projection.n, batch.z.data() + r * projection.n);
  }
}

// Rows of any other kind, listed first: each feature that is not zero meets the whole projection.
template <class T, class Rows>
SVMOSAIC_CLONES void project_rows(const Learner<T>&, const Rows& x, const Panels<T>& projection, Batch<T>& batch,
                                  Piece piece) {
  std::vector<T> out(projection.padded()), value;
  std::vector<int32_t> feature;
  for (int64_t r = piece.begin; r < piece.end; ++r) {
    value.clear();
    feature.clear();
    x.each(batch.row[r], [&](int64_t f, double v) {
      if (v == 0) return;
      feature.push_back(static_cast<int32_t>(f));
      value.push_back(static_cast<T>(v));
    });
    const int64_t indptr[2] = {0, static_cast<int64_t>(value.size())};
    const SparseRows<T> listed{value.data(), feature.data(), indptr, 1, x.n_features, 0.0};
    T* to = out.data();
    multiply_sparse(listed, 0, nullptr, 1, projection, &to);
    std::copy(out.data(), out.data() + projection.n, batch.z.data() + r * projection.n);
  }
}

// Without a projection, every gate sees the row itself.
template <class T, class Rows>
void copy_row(const LearnerShape& s, const Rows& x, int64_t i, T* z) {
  std::fill(z, z + s.n_coordinates(), T(0));
  x.each(i, [&](int64_t f, double value) { z[f] += static_cast<T>(value); });
  for (int64_t m = 1; m < s.n_gates(); ++m) std::copy(z, z + s.n_features, z + m * s.n_features);
}

// Scores, loss and the gradients of scores and shares, for row r of the batch, which is row i of phi.
template <class T, class Phi>
inline void row_losses(const Learner<T>& model, const Phi& phi, int64_t i, const LearnerTarget<T>& target, int64_t r,
                       bool learn_gate, Batch<T>& batch) {
  const LearnerShape& s = model.shape;
  const int64_t n_pairs = s.n_pairs(), C = s.n_outputs, stride = s.n_features + 1, k = s.width;
  const int32_t* tile = batch.tile.data() + r * n_pairs;
  const T *g = batch.g.data() + r * n_pairs, share = static_cast<T>(1 / std::sqrt(static_cast<double>(s.n_gates())));
  T *scores = batch.scores.data() + r * n_pairs * C, *e = batch.e.data() + r * C;
  std::fill(e, e + C, T(0));
  for (int64_t a = 0; a < n_pairs; ++a) {
    const T* w = model.tiles.value + tile[a] * model.tile_size();
    for (int64_t c = 0; c < C; ++c) {
      scores[a * C + c] = phi.dot(i, w + c * stride);
      e[c] += g[a] * scores[a * C + c];
    }
  }
  for (int64_t c = 0; c < C; ++c) e[c] *= share;
  const int64_t at = batch.row[r];
  batch.losses[r] = loss_and_slopes(model.options.loss, model.options.loss_parameter.data(),
                                    target.value + at * target.n_columns, target.weight[at], C, e);
  for (int64_t c = 0; c < C; ++c) e[c] *= share;
  if (!learn_gate) return;
  for (int64_t from = 0; from < n_pairs; from += k) {
    T *l = batch.l.data() + r * n_pairs, mean = 0;
    for (int64_t a = from; a < from + k; ++a) {
      l[a] = 0;
      for (int64_t c = 0; c < C; ++c) l[a] += e[c] * scores[a * C + c];
      mean += g[a] * l[a];
    }
    for (int64_t a = from; a < from + k; ++a) l[a] = g[a] * (l[a] - mean);
  }
}

// Forward and backward, for the rows of a piece.
template <class T, class Rows, class Gates>
SVMOSAIC_CLONES void rows_forward(const Learner<T>& model, Gates& gates, const Rows& x, const LearnerTarget<T>& target,
                                  const Panels<T>& projection, bool learn_gate, Piece piece, Batch<T>& batch,
                                  Dropped<T, Rows>& dropped) {
  const LearnerShape& s = model.shape;
  if (s.projected)
    project_rows(model, x, projection, batch, piece);
  else
    for (int64_t r = piece.begin; r < piece.end; ++r)
      copy_row(s, x, batch.row[r], batch.z.data() + r * s.n_coordinates());
  gates.code(model, piece, batch);
  for (int64_t r = piece.begin; r < piece.end; ++r) {
    if (model.options.dropout.rate > 0) {
      dropped.fill(model.options.dropout, batch.dropout_key, x, batch.row[r], r);
      row_losses(model, dropped.rows(), r, target, r, learn_gate, batch);
    } else {
      row_losses(model, x, batch.row[r], target, r, learn_gate, batch);
    }
    if (learn_gate) gates.backward(model, r, batch);
  }
}

// One Adam step on n numbers, with their gradient's mean over the batch.
template <class T>
inline void adam_step(const Moving<T>& at, int64_t offset, const T* gradient, int64_t n, double rate, double keep,
                      const LearnerOptions& o, const StepSizes& sizes) {
  T *value = at.value + offset, *first = at.first + offset, *second = at.second + offset;
  const T b1 = static_cast<T>(o.beta1), b2 = static_cast<T>(o.beta2), kept = static_cast<T>(keep),
          step = static_cast<T>(rate / sizes.correction1), scale = static_cast<T>(1 / sizes.correction2),
          epsilon = static_cast<T>(o.epsilon);
  for (int64_t i = 0; i < n; ++i) {
    first[i] = b1 * first[i] + (1 - b1) * gradient[i];
    second[i] = b2 * second[i] + (1 - b2) * gradient[i] * gradient[i];
    value[i] = kept * value[i] - step * first[i] / (std::sqrt(second[i] * scale) + epsilon);
  }
}

// Gradients and steps of a piece of the tiles. Row r of the batch is row `place(r)` of phi.
template <class T, class Phi, class Place>
inline void update_tiles(const Learner<T>& model, const Phi& phi, const Place& place, const Batch<T>& batch,
                         const StepSizes& step, Piece piece) {
  const int64_t n_pairs = model.shape.n_pairs(), C = model.shape.n_outputs, stride = model.shape.n_features + 1;
  std::vector<T> gradient(model.tile_size());
  for (int64_t j = piece.begin; j < piece.end; ++j) {
    const int64_t from = batch.pairs.begin_of(j), end = batch.pairs.end_of(j);
    if (from == end) continue;
    std::fill(gradient.begin(), gradient.end(), T(0));
    for (int64_t q = from; q < end; ++q) {
      const int64_t pair = batch.pairs.entry[q], r = pair / n_pairs;
      const T g = batch.g[pair] * static_cast<T>(step.inverse_n);
      for (int64_t c = 0; c < C; ++c) {
        const T e = batch.e[r * C + c];
        if (e != 0) phi.add(place(r), e * g, gradient.data() + c * stride);
      }
    }
    const double keep = std::exp(-model.options.decay * (step.clock - model.idle_since[j]));
    model.idle_since[j] = step.clock;
    adam_step(model.tiles, j * model.tile_size(), gradient.data(), model.tile_size(), step.rate, keep, model.options,
              step);
  }
}

template <class T, class Rows>
SVMOSAIC_CLONES void update_tiles(const Learner<T>& model, const Rows& x, const Dropped<T, Rows>& dropped,
                                  const Batch<T>& batch, const StepSizes& step, Piece piece) {
  if (model.options.dropout.rate > 0)
    update_tiles(model, dropped.rows(), [](int64_t r) { return r; }, batch, step, piece);
  else
    update_tiles(model, x, [&](int64_t r) { return int64_t{batch.row[r]}; }, batch, step, piece);
}

template <class T, class Rows>
SVMOSAIC_CLONES void update_projection(const Learner<T>& model, const Rows& x, const Batch<T>& batch,
                                       const StepSizes& step, Panels<T>& panels, Piece piece) {
  const int64_t stride = model.shape.n_features + 1, n = model.shape.n_coordinates(), m = piece.end - piece.begin;
  std::vector<T> gradient(m * stride);
  // A row is read once for all components of the piece.
  for (int64_t r = 0; r < batch.n; ++r)
    for (int64_t q = 0; q < m; ++q) {
      const T d = batch.dz[r * n + piece.begin + q] * static_cast<T>(step.inverse_n);
      if (d != 0) x.add(batch.row[r], d, gradient.data() + q * stride);
    }
  for (int64_t q = 0; q < m; ++q) {
    gradient[q * stride + stride - 1] = 0;
    const int64_t at = (piece.begin + q) * stride;
    adam_step(model.projection, at, gradient.data() + q * stride, stride, step.rate * model.options.gate_rate, 1.0,
              model.options, step);
    panels.set(piece.begin + q, model.projection.value + at);
  }
}

template <class T, class Gates>
SVMOSAIC_CLONES void update_gates(const Learner<T>& model, Gates& gates, const Batch<T>& batch, const StepSizes& step,
                                  Piece piece) {
  gates.update(model, batch, step, piece);
}

// Steps over `order` in batches, one learning rate per batch. Returns the sum of the losses, each before its step, added
// to `loss` one after another: the bits do not depend on how an epoch is cut into calls.
template <class T, class Rows, class Gates>
double learn_batches(const Learner<T>& model, Gates& gates, const Rows& x, const LearnerTarget<T>& target,
                     const int32_t* order, int64_t n_rows, int64_t batch_size, const double* rates, bool learn_gate,
                     int n_threads, double loss) {
  const LearnerShape& s = model.shape;
  const LearnerOptions& o = model.options;
  Team team(n_threads);
  Batch<T> batch;
  Dropped<T, Rows> dropped;
  Panels<T> projection;
  if (s.projected)
    projection = Panels<T>::pack(model.projection.value, s.n_coordinates(), s.n_features, s.n_features + 1);
  const int64_t projection_pieces =
      s.projected && learn_gate ? (s.n_coordinates() + kComponentsPerTask - 1) / kComponentsPerTask : 0;
  // Tiles of a gate are often much more in demand than others, so that many pieces share the work out better; on 16
  // threads, 64 take 6 % less time than 128.
  const int64_t tile_pieces = std::min<int64_t>(s.n_tiles(), 64);
  const int64_t gate_pieces = learn_gate ? std::min<int64_t>(s.n_tiles(), 32) : 0;
  for (int64_t from = 0; from < n_rows; from += batch_size, ++rates) {
    const int64_t n = std::min(batch_size, n_rows - from), row_pieces = std::max<int64_t>(1, n / kRowsPerTask);
    batch.take(s, order + from, n);
    gates.take(model, n);
    model.clock[0] += 1;
    model.clock[1] += *rates;
    if (o.dropout.rate > 0) {
      batch.dropout_key = o.dropout.key_of_step(static_cast<uint64_t>(model.clock[0]));
      dropped.take(x, n);
    }
    team.run(row_pieces, [&](int64_t t) {
      rows_forward(model, gates, x, target, projection, learn_gate, Piece(n, row_pieces, t), batch, dropped);
    });
    const StepSizes step{*rates, 1 - std::pow(o.beta1, model.clock[0]), 1 - std::pow(o.beta2, model.clock[0]),
                         model.clock[1], 1.0 / n};
    // On this thread: it takes less time than waiting for others.
    batch.pairs.sort(batch.tile, s.n_tiles());
    // No part needs what another part's step changes. The longest tasks come first.
    team.run(projection_pieces + tile_pieces + gate_pieces, [&](int64_t t) {
      if (t < projection_pieces)
        return update_projection(model, x, batch, step, projection, Piece(s.n_coordinates(), projection_pieces, t));
      if ((t -= projection_pieces) < tile_pieces)
        return update_tiles(model, x, dropped, batch, step, Piece(s.n_tiles(), tile_pieces, t));
      update_gates(model, gates, batch, step, Piece(s.n_tiles(), gate_pieces, t - tile_pieces));
    });
    if (learn_gate) gates.finish(model, step);
    for (int64_t r = 0; r < n; ++r) loss += batch.losses[r];
  }
  return loss;
}

}  // namespace svmosaic
