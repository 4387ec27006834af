// The tree of splits (split_tree_gate.hpp), inside the learner: soft, so that it has gradients.
//
// Node i sends a row right with probability sigma(t m_i), m_i = <theta_i, (z, 1)>, and left with the rest; t is the
// sharpness, which the driver raises until the tree is hard. l_j is the log probability of the path to leaf j. The k
// leaves are found by going down level by level with the k likeliest nodes so far.
//
//   d m_i = t (R_i (1 - sigma) - L_i sigma),   R_i, L_i = sums of d l_j over the chosen leaves to the right, left of i
//   d theta_i = d m_i (z, 1),   d z = sum_i d m_i theta_i
//
// Costs at most k (levels) p multiply-adds a row.
#pragma once

#include "learner.hpp"
#include "split_tree_gate.hpp"

namespace svmosaic {

template <class T>
struct TreePart {
  int64_t n_units = 0, levels = 0;  // inner nodes, and the levels they are on
  std::vector<int32_t> node;        // [row][level][place]: the nodes a row asked, -1 where there is none
  std::vector<T> right, gradient;   // of the same: sigma(t m), and d m
  Sorted asked;                     // (row, level, place) by node

  struct Way {
    int64_t node;
    T log_share;
  };

  // Likeliest first; of equals, the first.
  static void insert(std::vector<Way>& ways, const Way& way) {
    size_t at = ways.size();
    ways.push_back(way);
    for (; at > 0 && way.log_share > ways[at - 1].log_share; --at) ways[at] = ways[at - 1];
    ways[at] = way;
  }

  void take(const Learner<T>& model, int64_t n_rows) {
    n_units = model.shape.n_tiles - 1;
    levels = tree_levels(model.shape.n_tiles);
    node.assign(n_rows * levels * model.shape.width, -1);
    right.resize(node.size());
    gradient.assign(node.size(), T(0));
  }

  void code(const Learner<T>& model, Piece piece, Batch<T>& batch) {
    const int64_t p = batch.p, k = batch.width, n_inner = model.shape.n_tiles - 1;
    const T sharpness = static_cast<T>(model.sharpness);
    std::vector<Way> ways, next;
    for (int64_t r = piece.begin; r < piece.end; ++r) {
      const T* z = batch.z.data() + r * p;
      ways.assign(1, {0, T(0)});
      for (int64_t level = 0; level < levels; ++level) {
        next.clear();
        const int64_t slot = (r * levels + level) * k;
        int64_t place = 0;
        for (const Way& way : ways) {
          if (way.node >= n_inner) {
            insert(next, way);
            continue;
          }
          const T* theta = model.gate.value + way.node * (p + 1);
          const T u = sharpness * (dot(z, theta, p) + theta[p]), far = std::exp(-std::abs(u)), near = std::log1p(far);
          node[slot + place] = static_cast<int32_t>(way.node);
          right[slot + place++] = (u >= 0 ? 1 : far) / (1 + far);
          insert(next, {2 * way.node + 1, way.log_share - near - std::max(u, T(0))});   // log sigma(-u)
          insert(next, {2 * way.node + 2, way.log_share - near - std::max(-u, T(0))});  // log sigma(u)
        }
        if (static_cast<int64_t>(next.size()) > k) next.resize(k);
        ways.swap(next);
      }
      // Trees of fewer than k leaves are refused by the binding, so there are k ways by now.
      int32_t* tile = batch.tile.data() + r * k;
      T *g = batch.g.data() + r * k, total = 0;
      for (int64_t a = 0; a < k; ++a) {
        tile[a] = static_cast<int32_t>(ways[a].node - n_inner);
        total += g[a] = std::exp(ways[a].log_share - ways[0].log_share);
      }
      for (int64_t a = 0; a < k; ++a) g[a] /= total;
    }
  }

  void backward(const Learner<T>& model, int64_t r, Batch<T>& batch) {
    const int64_t p = batch.p, k = batch.width, n_inner = model.shape.n_tiles - 1, slot = r * levels * k;
    const T t = static_cast<T>(model.sharpness);
    // d log sigma(t m) / d m = t (1 - sigma(t m)), d log sigma(-t m) / d m = -t sigma(t m)
    for (int64_t a = 0; a < k; ++a) {
      int64_t child = batch.tile[r * k + a] + n_inner, level = -1;
      for (int64_t up = child; up > 0; up = (up - 1) / 2) ++level;
      for (; level >= 0; --level) {
        const int64_t parent = (child - 1) / 2;
        int64_t at = slot + level * k;
        while (node[at] != parent) ++at;
        gradient[at] += batch.l[r * k + a] * t * (child == 2 * parent + 2 ? 1 - right[at] : -right[at]);
        child = parent;
      }
    }
    if (!model.shape.projected) return;
    T* dz = batch.dz.data() + r * p;
    std::fill(dz, dz + p, T(0));
    for (int64_t at = slot; at < slot + levels * k; ++at)
      if (node[at] >= 0) axpy(gradient[at], model.gate.value + node[at] * (p + 1), dz, p);
  }

  void sort(const Batch<T>&) { asked.sort(node, n_units); }

  void update(const Learner<T>& model, const Batch<T>& batch, const StepSizes& step, Piece piece) const {
    const int64_t p = batch.p, a_row = levels * batch.width;
    std::vector<T> sum(p + 1);
    for (int64_t i = piece.begin; i < piece.end; ++i) {
      const int64_t from = asked.begin_of(i), end = asked.end_of(i);
      if (from == end) continue;
      std::fill(sum.begin(), sum.end(), T(0));
      for (int64_t q = from; q < end; ++q) {
        const T d = gradient[asked.entry[q]] * static_cast<T>(step.inverse_n);
        if (d == 0) continue;
        axpy(d, batch.z.data() + asked.entry[q] / a_row * p, sum.data(), p);
        sum[p] += d;
      }
      adam_step(model.gate, i * (p + 1), sum.data(), p + 1, step.rate * model.options.gate_rate, 1.0,
                model.options, step.correction1, step.correction2);
    }
  }

  void finish(const Learner<T>&, const StepSizes&) {}
};

}  // namespace svmosaic
