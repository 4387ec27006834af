// Gates of the nearest anchors, inside the learner; of each gate:
//
//   l_j = -tau |z - v_j|^2 over the k anchors nearest to z
//   d tau = -sum_j d l_j |z - v_j|^2,   d v_j = 2 tau d l_j (z - v_j),   d z = 2 tau sum_j d l_j v_j
//
// (the last because the d l_j of a row sum to zero). Costs K p multiply-adds per row.
#pragma once

#include <functional>

#include "learner.hpp"

namespace svmosaic {

// Whether any of `n` numbers (whole vectors) is at least `bound` after taking `less` off.
template <class T>
inline bool any_reaches(const T* value, const T* less, int64_t n, T bound) {
#if defined(__GNUC__)
  using Vector = ShortLanes<T>;
  constexpr int w = sizeof(Vector) / sizeof(T);
  Vector most = load_vector<Vector>(value) - load_vector<Vector>(less);
  for (int64_t j = w; j < n; j += w) {
    const Vector here = load_vector<Vector>(value + j) - load_vector<Vector>(less + j);
    most = here > most ? here : most;
  }
  const auto reached = most >= bound;
  int64_t words[4], any = 0;
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
  using Vector = ShortLanes<T>;
  constexpr int w = sizeof(Vector) / sizeof(T);
  if (width <= w && n >= 2 * w) {
    Vector most = load_vector<Vector>(value) - load_vector<Vector>(less);
    for (int64_t j = w; j < n; j += w) {
      const Vector here = load_vector<Vector>(value + j) - load_vector<Vector>(less + j);
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

// |v|^2 / 2 of an anchor. A function of its own, so that there is one machine code for it, and the bits do not depend on
// when an anchor is packed.
template <class T>
SVMOSAIC_CLONES T half_norm(const T* v, int64_t p) {
  return dot(v, v, p) / 2;
}

// The anchors of all gates, packed for their rows.
template <class T>
struct AnchorGates {
  std::vector<double> tau;           // [gate]
  std::vector<Panels<T>> anchors;    // [gate]
  std::vector<std::vector<T>> half_norms;  // [gate][tile of the gate, padded]
  std::vector<T> distance;           // [row][pair]
  std::vector<double> tau_parts;     // [row][gate]

  explicit AnchorGates(const Learner<T>& model) {
    const LearnerShape& s = model.shape;
    for (int64_t m = 0; m < s.n_gates(); ++m) {
      const T* first = model.anchors.value + s.first_tile[m] * s.n_components;
      const int64_t n = s.first_tile[m + 1] - s.first_tile[m];
      anchors.push_back(Panels<T>::pack(first, n, s.n_components, s.n_components));
      half_norms.emplace_back(anchors.back().padded(), std::numeric_limits<T>::infinity());
      for (int64_t j = 0; j < n; ++j) half_norms[m][j] = half_norm(first + j * s.n_components, s.n_components);
    }
  }

  void take(const Learner<T>& model, int64_t n_rows) {
    const LearnerShape& s = model.shape;
    tau.resize(s.n_gates());
    for (int64_t m = 0; m < s.n_gates(); ++m) tau[m] = std::exp(model.log_tau.value[m]);
    distance.resize(n_rows * s.n_pairs());
    tau_parts.resize(n_rows * s.n_gates());
  }

  SVMOSAIC_CLONES void code(const Learner<T>& model, Piece piece, Batch<T>& batch) {
    const LearnerShape& s = model.shape;
    const int64_t p = s.n_components, k = s.width, m_rows = piece.end - piece.begin;
    std::vector<const T*> from(m_rows);
    std::vector<T> close;
    std::vector<T*> to(m_rows);
    for (int64_t m = 0; m < s.n_gates(); ++m) {
      const int64_t padded = anchors[m].padded();
      close.resize(m_rows * padded);
      for (int64_t r = 0; r < m_rows; ++r) {
        from[r] = batch.z.data() + (piece.begin + r) * s.n_coordinates() + m * p;
        to[r] = close.data() + r * padded;
      }
      multiply_dense(from.data(), m_rows, anchors[m], to.data());
      for (int64_t r = 0; r < m_rows; ++r) {
        const int64_t first_pair = (piece.begin + r) * s.n_pairs() + m * k;
        int32_t* tile = batch.tile.data() + first_pair;
        T *g = batch.g.data() + first_pair, *away = distance.data() + first_pair, total = 0;
        choose_largest(to[r], half_norms[m].data(), padded, anchors[m].lanes, k, tile);
        T nearest = std::numeric_limits<T>::infinity();
        for (int64_t a = 0; a < k; ++a) {
          tile[a] += static_cast<int32_t>(s.first_tile[m]);
          away[a] = squared_difference(from[r], model.anchors.value + tile[a] * p, p);
          nearest = std::min(nearest, away[a]);
        }
        for (int64_t a = 0; a < k; ++a) total += g[a] = std::exp(static_cast<T>(-tau[m]) * (away[a] - nearest));
        for (int64_t a = 0; a < k; ++a) g[a] /= total;
      }
    }
  }

  void backward(const Learner<T>& model, int64_t r, Batch<T>& batch) {
    const LearnerShape& s = model.shape;
    const int64_t p = s.n_components, k = s.width;
    for (int64_t m = 0; m < s.n_gates(); ++m) {
      const int64_t first_pair = r * s.n_pairs() + m * k;
      const T *l = batch.l.data() + first_pair, *away = distance.data() + first_pair;
      double to_tau = 0;
      for (int64_t a = 0; a < k; ++a) to_tau -= static_cast<double>(l[a]) * away[a];
      tau_parts[r * s.n_gates() + m] = to_tau;
      if (!s.projected) continue;
      T* dz = batch.dz.data() + r * s.n_coordinates() + m * p;
      std::fill(dz, dz + p, T(0));
      for (int64_t a = 0; a < k; ++a)
        axpy(static_cast<T>(2 * tau[m]) * l[a], model.anchors.value + batch.tile[first_pair + a] * p, dz, p);
    }
  }

  void update(const Learner<T>& model, const Batch<T>& batch, const StepSizes& step, Piece piece) {
    const LearnerShape& s = model.shape;
    const int64_t p = s.n_components, k = s.width, n_pairs = s.n_pairs();
    std::vector<T> gradient(p);
    for (int64_t j = piece.begin; j < piece.end; ++j) {
      const int64_t from = batch.pairs.begin_of(j), end = batch.pairs.end_of(j);
      if (from == end) continue;
      const int64_t m = batch.pairs.entry[from] % n_pairs / k;
      std::fill(gradient.begin(), gradient.end(), T(0));
      const T* v = model.anchors.value + j * p;
      for (int64_t q = from; q < end; ++q) {
        const int64_t pair = batch.pairs.entry[q];
        const T along = static_cast<T>(2 * tau[m] * step.inverse_n) * batch.l[pair];
        const T* z = batch.z.data() + pair / n_pairs * s.n_coordinates() + m * p;
        for (int64_t f = 0; f < p; ++f) gradient[f] += along * (z[f] - v[f]);
      }
      adam_step(model.anchors, j * p, gradient.data(), p, step.rate * model.options.gate_rate, 1.0, model.options, step);
      const int64_t at = j - s.first_tile[m];
      anchors[m].set(at, v);
      half_norms[m][at] = half_norm(v, p);
    }
  }

  void finish(const Learner<T>& model, const StepSizes& step) {
    const int64_t n_gates = model.shape.n_gates(), n_rows = static_cast<int64_t>(tau_parts.size()) / n_gates;
    for (int64_t m = 0; m < n_gates; ++m) {
      double to_tau = 0;
      for (int64_t r = 0; r < n_rows; ++r) to_tau += tau_parts[r * n_gates + m];
      // d loss / d log tau = tau * d loss / d tau
      const double gradient = to_tau * tau[m] * step.inverse_n;
      adam_step(model.log_tau, m, &gradient, 1, step.rate * model.options.gate_rate, 1.0, model.options, step);
    }
  }
};

}  // namespace svmosaic
