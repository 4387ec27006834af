// The gate of the nearest anchors, inside the learner.
//
//   l_j = -tau |z - v_j|^2 over the k anchors nearest to z
//   d tau = -sum_j d l_j |z - v_j|^2,   d v_j = 2 tau d l_j (z - v_j),   d z = 2 tau sum_j d l_j v_j
//
// (the last because the d l_j of a row sum to zero). Costs K p multiply-adds a row.
#pragma once

#include <functional>

#include "learner.hpp"

namespace svmosaic {

// Whether any of `n` numbers (whole vectors) is at least `bound` after taking `less` off.
template <class T>
inline bool any_reaches(const T* value, const T* less, int64_t n, T bound) {
#if defined(__GNUC__)
  constexpr int w = kLanes<T>;
  Lanes<T> most = load<T>(value) - load<T>(less);
  for (int64_t j = w; j < n; j += w) {
    const Lanes<T> here = load<T>(value + j) - load<T>(less + j);
    most = here > most ? here : most;
  }
  const auto reached = most >= bound;
  int64_t words[8], any = 0;
  std::memcpy(words, &reached, sizeof(words));
  for (int64_t word : words) any |= word;
  return any != 0;
#else
  for (int64_t j = 0; j < n; ++j)
    if (value[j] - less[j] >= bound) return true;
  return false;
#endif
}

// A number that at least `width` of the value_j - less_j reach: the width-th largest of the maxima of the lanes.
template <class T>
inline T bound_of_largest(const T* value, const T* less, int64_t n, int64_t width) {
#if defined(__GNUC__)
  constexpr int w = kLanes<T>;
  if (width <= w && n >= 2 * w) {
    Lanes<T> most = load<T>(value) - load<T>(less);
    for (int64_t j = w; j < n; j += w) {
      const Lanes<T> here = load<T>(value + j) - load<T>(less + j);
      most = here > most ? here : most;
    }
    T maxima[w];
    std::memcpy(maxima, &most, sizeof(maxima));
    std::nth_element(maxima, maxima + width - 1, maxima + w, std::greater<T>());
    return maxima[width - 1];
  }
#endif
  (void)value, (void)less, (void)n, (void)width;
  return -std::numeric_limits<T>::infinity();
}

// The `width` largest of value_j - less_j, largest first; of equals, the first. `n` is in whole blocks, and what pads
// it has less_j infinite.
template <class T>
inline void choose_largest(const T* value, const T* less, int64_t n, int64_t block, int64_t width, int32_t* chosen) {
  const T bound = bound_of_largest(value, less, n, width);
  int64_t found = 0;
  T worst = -std::numeric_limits<T>::infinity();
  for (int64_t from = 0; from < n; from += block) {
    if (!any_reaches(value + from, less + from, block, std::max(bound, worst))) continue;
    for (int64_t j = from; j < from + block; ++j) {
      const T here = value[j] - less[j];
      if (here < bound || (found == width && !(here > worst))) continue;
      int64_t at = found < width ? found++ : width - 1;
      for (; at > 0 && here > value[chosen[at - 1]] - less[chosen[at - 1]]; --at) chosen[at] = chosen[at - 1];
      chosen[at] = static_cast<int32_t>(j);
      if (found == width) worst = value[chosen[width - 1]] - less[chosen[width - 1]];
    }
  }
  // Parameters that are no numbers any more: any tile will do, the driver sees to the rest.
  for (; found < width; ++found) chosen[found] = static_cast<int32_t>(found);
}

template <class T>
inline T squared_difference(const T* x, const T* y, int64_t n) {
  T sum = 0;
  int64_t i = 0;
#if defined(__GNUC__)
  constexpr int w = kLanes<T>;
  Lanes<T> lanes{};
  for (; i + w <= n; i += w) {
    const Lanes<T> difference = load<T>(x + i) - load<T>(y + i);
    lanes += difference * difference;
  }
  for (int lane = 0; lane < w; ++lane) sum += lanes[lane];
#endif
  for (; i < n; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

template <class T>
struct AnchorPart {
  int64_t n_units = 0;  // anchors
  double tau = 1;
  Panels<T> anchors;
  std::vector<T> half_norms, distance;  // [tile], [row][a]
  std::vector<double> tau_parts;        // [row]

  void take(const Learner<T>& model, int64_t n_rows) {
    const LearnerShape& s = model.shape;
    n_units = s.n_tiles;
    tau = std::exp(*model.log_tau.value);
    anchors = Panels<T>::pack(model.gate.value, s.n_tiles, s.n_components, s.n_components);
    half_norms.assign(anchors.padded(), std::numeric_limits<T>::infinity());
    for (int64_t j = 0; j < s.n_tiles; ++j) {
      const T* v = model.gate.value + j * s.n_components;
      half_norms[j] = dot(v, v, s.n_components) / 2;
    }
    distance.resize(n_rows * s.width);
    tau_parts.assign(n_rows, 0.0);
  }

  void code(const Learner<T>& model, Piece piece, Batch<T>& batch) {
    const int64_t p = batch.p, k = batch.width, m = piece.end - piece.begin, padded = anchors.padded();
    std::vector<T> close(m * padded);
    std::vector<const T*> from(m);
    std::vector<T*> to(m);
    for (int64_t r = 0; r < m; ++r) {
      from[r] = batch.z.data() + (piece.begin + r) * p;
      to[r] = close.data() + r * padded;
    }
    multiply_dense(from.data(), m, anchors, to.data());
    for (int64_t r = piece.begin; r < piece.end; ++r) {
      int32_t* tile = batch.tile.data() + r * k;
      T *g = batch.g.data() + r * k, *away = distance.data() + r * k, total = 0;
      choose_largest(to[r - piece.begin], half_norms.data(), padded, anchors.lanes, k, tile);
      T nearest = std::numeric_limits<T>::infinity();
      for (int64_t a = 0; a < k; ++a) {
        away[a] = squared_difference(from[r - piece.begin], model.gate.value + tile[a] * p, p);
        nearest = std::min(nearest, away[a]);
      }
      for (int64_t a = 0; a < k; ++a) total += g[a] = std::exp(static_cast<T>(-tau) * (away[a] - nearest));
      for (int64_t a = 0; a < k; ++a) g[a] /= total;
    }
  }

  void backward(const Learner<T>& model, int64_t r, Batch<T>& batch) {
    const int64_t p = batch.p, k = batch.width;
    const T *l = batch.l.data() + r * k, *away = distance.data() + r * k;
    double to_tau = 0;
    for (int64_t a = 0; a < k; ++a) to_tau -= static_cast<double>(l[a]) * away[a];
    tau_parts[r] = to_tau;
    if (!model.shape.projected) return;
    T* dz = batch.dz.data() + r * p;
    std::fill(dz, dz + p, T(0));
    for (int64_t a = 0; a < k; ++a)
      axpy(static_cast<T>(2 * tau) * l[a], model.gate.value + batch.tile[r * k + a] * p, dz, p);
  }

  void sort(const Batch<T>&) {}

  void update(const Learner<T>& model, const Batch<T>& batch, const StepSizes& step, Piece piece) const {
    const int64_t p = batch.p, k = batch.width;
    std::vector<T> gradient(p);
    for (int64_t j = piece.begin; j < piece.end; ++j) {
      const int64_t from = batch.pairs.begin_of(j), end = batch.pairs.end_of(j);
      if (from == end) continue;
      std::fill(gradient.begin(), gradient.end(), T(0));
      const T* v = model.gate.value + j * p;
      for (int64_t q = from; q < end; ++q) {
        const int64_t pair = batch.pairs.entry[q];
        const T along = static_cast<T>(2 * tau * step.inverse_n) * batch.l[pair];
        const T* z = batch.z.data() + pair / k * p;
        for (int64_t f = 0; f < p; ++f) gradient[f] += along * (z[f] - v[f]);
      }
      adam_step(model.gate, j * p, gradient.data(), p, step.rate * model.options.gate_rate, 1.0, model.options,
                step.correction1, step.correction2);
    }
  }

  void finish(const Learner<T>& model, const StepSizes& step) {
    double to_tau = 0;
    for (double part : tau_parts) to_tau += part;
    // d loss / d log tau = tau * d loss / d tau
    const double gradient = to_tau * tau * step.inverse_n;
    adam_step(model.log_tau, 0, &gradient, 1, step.rate * model.options.gate_rate, 1.0, model.options,
              step.correction1, step.correction2);
  }
};

}  // namespace svmosaic
