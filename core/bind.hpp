// What the binding files share: array types, handles that keep their arrays alive, and checks.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <stdexcept>

#include "design.hpp"
#include "loss.hpp"
#include "rows.hpp"

namespace nb = nanobind;

namespace svmosaic {

template <class T, class... Shape>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu, Shape...>;
template <class T>
using Vector = Array<T, nb::ndim<1>>;
template <class T>
using Matrix = Array<T, nb::ndim<2>>;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// The arrays are kept alive by the handles; `any` points into them.
struct RowsHandle {
  AnyRows any;
  nb::object owners;

  template <class Function>
  auto visit(Function&& function) const {
    return std::visit(std::forward<Function>(function), any);
  }
  // Only rows that hold the numbers themselves; others are refused.
  template <class Function>
  auto visit_plain(Function&& function) const {
    using Result = decltype(function(std::get<0>(any)));
    return visit([&](const auto& x) -> Result {
      if constexpr (kPlain<std::decay_t<decltype(x)>>)
        return function(x);
      else
        throw std::invalid_argument("encoded rows are for the tiles: pass the rows themselves");
    });
  }
  int64_t n_rows() const {
    return visit([](const auto& x) { return x.n_rows; });
  }
  int64_t n_features() const {
    return visit([](const auto& x) { return x.n_features; });
  }
};

// Multiplications that take less time than handing the interpreter's lock to another thread and back: some tens of
// microseconds. So short a call keeps it.
constexpr int64_t kShortCall = 1 << 19;

// A function of the rows whose precision is T; other rows are refused. `work`: multiplications per row.
template <class T, class Function>
void with_rows(const RowsHandle& rows, int64_t n_features, int64_t work, Function&& function) {
  require(rows.n_features() == n_features, "the rows have another number of features");
  std::optional<nb::gil_scoped_release> release;
  if (rows.n_rows() * work > kShortCall) release.emplace();
  rows.visit_plain([&](const auto& x) {
    if constexpr (std::is_same_v<typename std::decay_t<decltype(x)>::value_type, T>)
      function(x);
    else
      throw std::invalid_argument("the rows have another precision");
  });
}

struct DesignHandle {
  Design design;
  int64_t n_data;  // data rows it was made for
  nb::object owners;
};

// Checks compressed sparse rows; returns their number.
template <class T>
int64_t check_csr(const Vector<const T>& data, const Vector<const int32_t>& indices, const Vector<const int64_t>& indptr,
                  int64_t n_features) {
  require(indptr.shape(0) >= 1, "indptr must not be empty");
  require(n_features >= 0, "n_features must not be negative");
  const int64_t n = indptr.shape(0) - 1, stored = data.shape(0);
  require(static_cast<int64_t>(indices.shape(0)) == stored, "data and indices must have the same length");
  require(indptr.data()[0] == 0 && indptr.data()[n] == stored, "indptr must run from 0 to the number of stored values");
  for (int64_t i = 0; i < n; ++i) require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
  for (int64_t p = 0; p < stored; ++p)
    require(indices.data()[p] >= 0 && indices.data()[p] < n_features, "a column index is out of range");
  return n;
}

inline void require_length(int64_t length, int64_t n, const char* message) { require(length == n, message); }

// A tree of softmaxes: one offset, prior and parent a node, parents before their children, siblings side by side.
inline void require_tree(int64_t n_nodes, const Vector<const double>& offset, const Vector<const double>& log_prior,
                         const Vector<const int32_t>& parent, const Vector<const int32_t>& leaf) {
  const int64_t n_leaves = leaf.shape(0);
  require(n_nodes >= 1 && n_leaves >= 1, "a gate needs a leaf");
  require_length(offset.shape(0), n_nodes, "offset must have one entry a node");
  require_length(log_prior.shape(0), n_nodes, "log_prior must have one entry a node");
  require_length(parent.shape(0), n_nodes, "parent must have one entry a node");
  for (int64_t a = 0; a < n_nodes; ++a) {
    require(parent.data()[a] >= -1 && parent.data()[a] < a, "parents must come before their children");
    require(a == 0 || parent.data()[a] >= parent.data()[a - 1], "siblings must be neighbours");
  }
  for (int64_t j = 0; j < n_leaves; ++j)
    require(leaf.data()[j] >= 0 && leaf.data()[j] < n_nodes, "a leaf is out of range");
}

// A design of more data rows than there are would read past their end.
inline void check_design(const RowsHandle& rows, const DesignHandle& d) {
  require_length(d.n_data, rows.n_rows(), "the design was made for other rows");
}

template <class Real>
void check_weights(const RowsHandle& rows, const DesignHandle& d, const Matrix<Real>& v) {
  check_design(rows, d);
  require(static_cast<int64_t>(v.shape(0)) == d.design.n_blocks &&
              static_cast<int64_t>(v.shape(1)) == rows.n_features() + 1,
          "weights must have shape (n_blocks, n_features + 1)");
}

inline Loss make_loss(int power) {
  require(power == 1 || power == 2, "the power of the loss must be 1 or 2");
  return {power};
}

inline Target make_target(int64_t n, const Vector<const int8_t>& sign,
                          const std::optional<Vector<const double>>& threshold, const Vector<const double>& cost,
                          int power) {
  require_length(sign.shape(0), n, "sign must have one entry per row");
  require_length(cost.shape(0), n, "cost must have one entry per row");
  if (threshold) require_length(threshold->shape(0), n, "threshold must have one entry per row");
  return {sign.data(), threshold ? threshold->data() : nullptr, cost.data(), make_loss(power)};
}

// The curves of columns: where their knots start, which must increase.
inline void check_curves(int64_t n_columns, const Vector<const double>& scale, const Vector<const int32_t>& column,
                         const Vector<const int32_t>& start, const Vector<const double>& knot) {
  const int64_t n_curves = column.shape(0), n_hats = knot.shape(0);
  require_length(scale.shape(0), n_columns, "scale must have one entry per column");
  require_length(start.shape(0), n_curves + 1, "start must have one entry per curve, and one more");
  require(start.data()[0] == 0 && start.data()[n_curves] == n_hats, "start must run from 0 to the number of knots");
  for (int64_t c = 0; c < n_curves; ++c) {
    const int32_t begin = start.data()[c], end = start.data()[c + 1];
    require(end - begin >= 2 && end - begin <= 257, "a curve needs two knots or more, and at most 257");
    require(end <= n_hats, "start must not decrease");
    require(column.data()[c] >= 0 && column.data()[c] < n_columns, "a column is out of range");
    require(c == 0 || column.data()[c] > column.data()[c - 1], "columns must increase");
    for (int32_t h = begin; h + 1 < end; ++h) require(knot.data()[h] < knot.data()[h + 1], "knots must increase");
  }
}

// One function per binding file, called by the module.
void bind_rows(nb::module_& m);
void bind_pieces(nb::module_& m);
void bind_descent(nb::module_& m);
void bind_mixture(nb::module_& m);
void bind_newton(nb::module_& m);
void bind_gates(nb::module_& m);
void bind_score(nb::module_& m);
void bind_sgd(nb::module_& m);
void bind_crammer_singer(nb::module_& m);
void bind_neighbors(nb::module_& m);
void bind_learner(nb::module_& m);
void bind_rules(nb::module_& m);
void bind_boosting(nb::module_& m);

}  // namespace svmosaic
