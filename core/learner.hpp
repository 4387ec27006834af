// Learning a gate together with its tiles, by minibatches.
//
// Model, for row x with z = P x (or z = x), the k anchors v_j nearest to z, and outputs c:
//
//   g_j = softmax_j( -tau |z - v_j|^2 ),     s_jc = <w_jc, (x, bias)>,     f_c = sum_j g_j s_jc
//   loss = sum_c weight * max(0, 1 - y_c f_c)^2,     y_c = +1 for the row's class, else -1
//
// Gradients, with e_c = d loss / d f_c = -2 weight y_c max(0, 1 - y_c f_c):
//
//   d w_jc = e_c g_j (x, bias)
//   a_j = sum_c e_c s_jc,   l_j = g_j (a_j - sum_i g_i a_i)        (through the softmax)
//   d tau = -sum_j l_j |z - v_j|^2,   d v_j = 2 tau l_j (z - v_j),   d z = 2 tau sum_j l_j v_j,   d P = d z x^T
//
// A batch costs about d p + K p + 2 k C d + d p multiply-adds a row: only the k chosen tiles are touched. The steps are
// Adam's, with decoupled weight decay on the tiles; a tile that a batch does not touch is left alone and decays for all
// its idle steps at once when it is next touched. Each parameter is updated by one thread that adds its rows in their
// order, so the bits do not depend on the number of threads.
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
  Moving<T> anchors;     // [tile][component]
  Moving<T> projection;  // [component][feature + bias]; the bias column stays zero
  Moving<double> log_tau;
  double* idle_since;  // [tile]: sum of learning rates when the tile was last touched
  double* clock;       // {steps taken, sum of learning rates}

  int64_t tile_size() const { return shape.n_outputs * (shape.n_features + 1); }
};

// What a batch computes row by row, and the lists of pairs by tile.
template <class T>
struct Batch {
  int64_t n, width, n_outputs, p;
  std::vector<int64_t> row;      // data rows of the batch
  std::vector<T> z, dz;          // [row][component]
  std::vector<int32_t> tile;     // [row][a]
  std::vector<T> g, l, scores;   // [row][a], [row][a], [row][a][output]
  std::vector<T> e;              // [row][output]
  std::vector<double> tau_parts, losses;
  std::vector<int64_t> start;
  std::vector<int32_t> pairs;

  Batch(int64_t n, const LearnerShape& s)
      : n(n), width(s.width), n_outputs(s.n_outputs), p(s.n_components), row(n), z(n * p), dz(s.projected ? n * p : 0),
        tile(n * width), g(n * width), l(n * width), scores(n * width * n_outputs), e(n * n_outputs), tau_parts(n),
        losses(n), start(s.n_tiles + 1), pairs(n * width) {}
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

// The `width` largest of n numbers, largest first; of equals, the first.
template <class T>
inline void choose_largest(const T* value, int64_t n, int64_t width, int32_t* chosen) {
  int64_t found = 0;
  T worst = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < n; ++j) {
    if (found == width && !(value[j] > worst)) continue;
    int64_t at = found < width ? found++ : width - 1;
    for (; at > 0 && value[j] > value[chosen[at - 1]]; --at) chosen[at] = chosen[at - 1];
    chosen[at] = static_cast<int32_t>(j);
    worst = value[chosen[found - 1]];
  }
}

// Forward and backward through the gate, for the rows of a piece.
template <class T, class Rows>
SVMOSAIC_CLONES void rows_forward(const Learner<T>& model, const Rows& x, const int32_t* label, const double* weight,
                                  const Panels<T>& anchors, const std::vector<T>& half_norms, double tau, Piece piece,
                                  Batch<T>& batch) {
  const LearnerShape& s = model.shape;
  const int64_t p = s.n_components, k = s.width, C = s.n_outputs, stride = s.n_features + 1, m = piece.end - piece.begin;
  const int64_t padded = anchors.padded();
  std::vector<T> close(m * padded);
  std::vector<const T*> from(m);
  std::vector<T*> to(m);
  for (int64_t r = 0; r < m; ++r) {
    from[r] = batch.z.data() + (piece.begin + r) * p;
    to[r] = close.data() + r * padded;
  }
  multiply_dense(from.data(), m, anchors, to.data());
  std::vector<double> distance(k), share(k), pull(k);
  for (int64_t r = piece.begin; r < piece.end; ++r) {
    T* closeness = to[r - piece.begin];
    for (int64_t j = 0; j < s.n_tiles; ++j) closeness[j] -= half_norms[j];
    int32_t* tile = batch.tile.data() + r * k;
    choose_largest(closeness, s.n_tiles, k, tile);
    const T* z = batch.z.data() + r * p;
    double nearest = std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t a = 0; a < k; ++a) {
      const T* v = model.anchors.value + tile[a] * p;
      double sum = 0;
      for (int64_t q = 0; q < p; ++q) sum += static_cast<double>(z[q] - v[q]) * (z[q] - v[q]);
      distance[a] = sum;
      nearest = std::min(nearest, sum);
    }
    for (int64_t a = 0; a < k; ++a) total += share[a] = std::exp(-tau * (distance[a] - nearest));
    const int64_t i = batch.row[r];
    T* scores = batch.scores.data() + r * k * C;
    T* e = batch.e.data() + r * C;
    for (int64_t c = 0; c < C; ++c) e[c] = 0;
    for (int64_t a = 0; a < k; ++a) {
      share[a] /= total;
      batch.g[r * k + a] = static_cast<T>(share[a]);
      const T* w = model.tiles.value + tile[a] * model.tile_size();
      for (int64_t c = 0; c < C; ++c) {
        scores[a * C + c] = x.dot(i, w + c * stride);
        e[c] += static_cast<T>(share[a]) * scores[a * C + c];
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
    if (!s.learn_gate) continue;
    double mean = 0;
    for (int64_t a = 0; a < k; ++a) {
      pull[a] = 0;
      for (int64_t c = 0; c < C; ++c) pull[a] += static_cast<double>(e[c]) * scores[a * C + c];
      mean += share[a] * pull[a];
    }
    double to_tau = 0;
    for (int64_t a = 0; a < k; ++a) {
      const double l = share[a] * (pull[a] - mean);
      batch.l[r * k + a] = static_cast<T>(l);
      to_tau -= l * distance[a];
    }
    batch.tau_parts[r] = to_tau;
    if (!s.projected) continue;
    T* dz = batch.dz.data() + r * p;
    for (int64_t q = 0; q < p; ++q) dz[q] = 0;
    for (int64_t a = 0; a < k; ++a) axpy(static_cast<T>(2 * tau) * batch.l[r * k + a], model.anchors.value + tile[a] * p, dz, p);
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

struct StepSizes {
  double rate, correction1, correction2, clock, inverse_n, tau;
};

// Gradients and steps of the tiles and anchors of a piece of the tiles.
template <class T, class Rows>
SVMOSAIC_CLONES void update_tiles(const Learner<T>& model, const Rows& x, const Batch<T>& batch, const StepSizes& step,
                                  Piece piece) {
  const LearnerShape& s = model.shape;
  const int64_t p = s.n_components, k = s.width, C = s.n_outputs, stride = s.n_features + 1;
  std::vector<T> gradient(model.tile_size()), to_anchor(p);
  for (int64_t j = piece.begin; j < piece.end; ++j) {
    const int64_t from = j == 0 ? 0 : batch.start[j - 1], end = batch.start[j];
    if (from == end) continue;
    std::fill(gradient.begin(), gradient.end(), T(0));
    std::fill(to_anchor.begin(), to_anchor.end(), T(0));
    for (int64_t q = from; q < end; ++q) {
      const int64_t pair = batch.pairs[q], r = pair / k;
      const T g = batch.g[pair] * static_cast<T>(step.inverse_n);
      for (int64_t c = 0; c < C; ++c) {
        const T e = batch.e[r * C + c];
        if (e != 0) x.add(batch.row[r], e * g, gradient.data() + c * stride);
      }
      if (s.learn_gate) {
        const T along = static_cast<T>(2 * step.tau * step.inverse_n) * batch.l[pair];
        const T *z = batch.z.data() + r * p, *v = model.anchors.value + j * p;
        for (int64_t f = 0; f < p; ++f) to_anchor[f] += along * (z[f] - v[f]);
      }
    }
    const double keep = std::exp(-model.options.decay * (step.clock - model.idle_since[j]));
    model.idle_since[j] = step.clock;
    adam_step(model.tiles, j * model.tile_size(), gradient.data(), model.tile_size(), step.rate, keep, model.options,
              step.correction1, step.correction2);
    if (s.learn_gate)
      adam_step(model.anchors, j * p, to_anchor.data(), p, step.rate * model.options.gate_rate, 1.0, model.options,
                step.correction1, step.correction2);
  }
}

template <class T, class Rows>
SVMOSAIC_CLONES void update_projection(const Learner<T>& model, const Rows& x, const Batch<T>& batch,
                                       const StepSizes& step, Piece piece) {
  const int64_t stride = model.shape.n_features + 1, p = model.shape.n_components;
  std::vector<T> gradient(stride);
  for (int64_t q = piece.begin; q < piece.end; ++q) {
    std::fill(gradient.begin(), gradient.end(), T(0));
    for (int64_t r = 0; r < batch.n; ++r) {
      const T d = batch.dz[r * p + q] * static_cast<T>(step.inverse_n);
      if (d != 0) x.add(batch.row[r], d, gradient.data());
    }
    gradient[stride - 1] = 0;
    adam_step(model.projection, q * stride, gradient.data(), stride, step.rate * model.options.gate_rate, 1.0,
              model.options, step.correction1, step.correction2);
  }
}

// One batch: `rows` are the data rows in it. Returns the sum of the losses before the step.
template <class T, class Rows>
double learn_batch(const Learner<T>& model, const Rows& x, const int32_t* label, const double* weight,
                   const int32_t* rows, int64_t n, double rate, int n_threads) {
  const LearnerShape& s = model.shape;
  const AdamOptions& o = model.options;
  Batch<T> batch(n, s);
  for (int64_t r = 0; r < n; ++r) batch.row[r] = rows[r];
  const double tau = std::exp(*model.log_tau.value);
  const Panels<T> anchors = Panels<T>::pack(model.anchors.value, s.n_tiles, s.n_components, s.n_components);
  std::vector<T> half_norms(s.n_tiles);
  for (int64_t j = 0; j < s.n_tiles; ++j) {
    const T* v = model.anchors.value + j * s.n_components;
    half_norms[j] = dot(v, v, s.n_components) / 2;
  }
  Panels<T> projection;
  if (s.projected)
    projection = Panels<T>::pack(model.projection.value, s.n_components, s.n_features, s.n_features + 1);
  const int64_t n_pieces = std::max<int64_t>(1, n / 96);
  parallel_for(n_pieces, n_threads, [&](int64_t t) {
    const Piece piece(n, n_pieces, t);
    if (s.projected)
      project_rows(x, projection, batch, piece);
    else
      for (int64_t r = piece.begin; r < piece.end; ++r) copy_row(x, batch.row[r], batch.z.data() + r * s.n_components);
    rows_forward(model, x, label, weight, anchors, half_norms, tau, piece, batch);
  });

  for (int32_t j : batch.tile) ++batch.start[j + 1];
  for (int64_t j = 0; j < s.n_tiles; ++j) batch.start[j + 1] += batch.start[j];
  for (int64_t q = 0; q < n * s.width; ++q) batch.pairs[batch.start[batch.tile[q]]++] = static_cast<int32_t>(q);

  model.clock[0] += 1;
  model.clock[1] += rate;
  const StepSizes step{rate, 1 - std::pow(o.beta1, model.clock[0]), 1 - std::pow(o.beta2, model.clock[0]),
                       model.clock[1], 1.0 / n, tau};
  // The projection first: it needs nothing that the tiles' step changes, nor the other way round.
  const int64_t tile_pieces = std::min<int64_t>(s.n_tiles, 64);
  const int64_t projection_pieces = s.projected && s.learn_gate ? s.n_components : 0;
  parallel_for(tile_pieces + projection_pieces, n_threads, [&](int64_t t) {
    if (t < projection_pieces)
      update_projection(model, x, batch, step, Piece(s.n_components, projection_pieces, t));
    else
      update_tiles(model, x, batch, step, Piece(s.n_tiles, tile_pieces, t - projection_pieces));
  });
  double loss = 0, to_tau = 0;
  for (int64_t r = 0; r < n; ++r) {
    loss += batch.losses[r];
    to_tau += batch.tau_parts[r];
  }
  if (s.learn_gate) {
    // d loss / d log tau = tau * d loss / d tau
    const double gradient = to_tau * tau / n;
    adam_step(model.log_tau, 0, &gradient, 1, rate * o.gate_rate, 1.0, o, step.correction1, step.correction2);
  }
  return loss;
}

}  // namespace svmosaic
