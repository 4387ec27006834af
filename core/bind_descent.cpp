// Dual coordinate descent.
#include "bind.hpp"
#include "dual_descent.hpp"
#include "neighbors.hpp"

namespace svmosaic {
namespace {

template <class Real>
std::tuple<int64_t, double> descend(const RowsHandle& rows, const DesignHandle& d, Vector<const int8_t> sign,
                                    std::optional<Vector<const double>> threshold, Vector<const double> cost, int power,
                                    Vector<const double> curvature, Vector<int32_t> order, DescentState& state,
                                    Vector<double> alpha, Matrix<Real> v, double aim, int64_t max_epochs,
                                    double max_seconds) {
  const int64_t n = d.design.n_rows;
  const Target target = make_target(n, sign, threshold, cost, power);
  require_length(curvature.shape(0), n, "curvature must have one entry per row");
  require_length(alpha.shape(0), n, "alpha must have one entry per row");
  require(state.n_active >= 0 && state.n_active <= static_cast<int64_t>(order.shape(0)),
          "state and order do not belong together");
  for (int64_t s = 0; s < state.n_active; ++s)
    require(order.data()[s] >= 0 && order.data()[s] < n, "order names a row that is not there");
  check_weights(rows, d, v);
  nb::gil_scoped_release release;
  const DescentReport report = rows.visit([&](const auto& x) -> DescentReport {
    using T = typename std::decay_t<decltype(x)>::value_type;
    if constexpr (sizeof(T) > sizeof(Real))
      throw std::invalid_argument("float64 rows need float64 weights");
    else
      return dual_descent(x, d.design, target, curvature.data(), order.data(), state, alpha.data(), v.data(), aim,
                          max_epochs, max_seconds);
  });
  return {report.n_epochs, report.gap};
}

}  // namespace

void bind_descent(nb::module_& m) {
  nb::class_<DescentState>(m, "DescentState", "What dual descent remembers between two calls.")
      .def("__init__",
           [](DescentState* self, Vector<const uint64_t> seed, int64_t n_active) {
             require_length(seed.shape(0), 4, "the seed is four words");
             new (self) DescentState{};
             std::copy(seed.data(), seed.data() + 4, self->random);
             self->n_active = n_active;
           },
           nb::arg("seed"), nb::arg("n_active"))
      .def("unshrink", &DescentState::unshrink, nb::arg("n"))
      .def_ro("n_active", &DescentState::n_active);

  m.def("dual_descent", &descend<float>, nb::arg("rows"), nb::arg("design"), nb::arg("sign"),
        nb::arg("threshold").none(), nb::arg("cost"), nb::arg("power"), nb::arg("curvature"),
        nb::arg("order").noconvert(), nb::arg("state"), nb::arg("alpha").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("aim"), nb::arg("max_epochs"), nb::arg("max_seconds"),
        "Epochs of dual coordinate descent; returns (epochs, estimated gap).");
  m.def("dual_descent", &descend<double>, nb::arg("rows"), nb::arg("design"), nb::arg("sign"),
        nb::arg("threshold").none(), nb::arg("cost"), nb::arg("power"), nb::arg("curvature"),
        nb::arg("order").noconvert(), nb::arg("state"), nb::arg("alpha").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("aim"), nb::arg("max_epochs"), nb::arg("max_seconds"));
}

void bind_neighbors(nb::module_& m) {
  m.def(
      "score_by_neighbors",
      [](const RowsHandle& rows, const RowsHandle& queries, Matrix<const int32_t> index, Vector<const int32_t> label,
         Vector<const double> cost, Vector<const double> norm, int64_t n_classes, int power, double tol,
         int64_t max_epochs, Vector<const uint64_t> seed, Matrix<double> out, int n_threads) {
        const int64_t n = rows.n_rows(), n_queries = queries.n_rows(), k = index.shape(1);
        require_length(index.shape(0), n_queries, "index must have one line per query");
        require_length(label.shape(0), n, "label must have one entry a training row");
        require_length(cost.shape(0), n, "cost must have one entry a training row");
        require_length(norm.shape(0), n, "norm must have one entry a training row");
        require_length(seed.shape(0), 4, "the seed is four words");
        require(k >= 1 && n_classes >= 2, "at least one neighbour and two classes are needed");
        require(rows.n_features() == queries.n_features(), "queries have another number of features");
        require(static_cast<int64_t>(out.shape(0)) == n_queries &&
                    static_cast<int64_t>(out.shape(1)) == (n_classes == 2 ? 1 : n_classes),
                "out must have one column a class, one for two classes");
        for (int64_t i = 0; i < n_queries * k; ++i)
          require(index.data()[i] >= 0 && index.data()[i] < n, "a neighbour is out of range");
        for (int64_t i = 0; i < n; ++i)
          require(label.data()[i] >= 0 && label.data()[i] < n_classes, "a label is out of range");
        const Loss loss = make_loss(power);
        nb::gil_scoped_release release;
        const SmallReport total = rows.visit_plain([&](const auto& x) -> SmallReport {
          using Rows = std::decay_t<decltype(x)>;
          const Rows* z = std::get_if<Rows>(&queries.any);
          if (!z) throw std::invalid_argument("queries must be stored as the training rows are");
          const int64_t n_pieces = std::max<int64_t>(1, std::min<int64_t>(n_queries, 256));
          std::vector<SmallReport> reports(n_pieces);
          parallel_for(n_pieces, n_threads, [&](int64_t t) {
            SmallScratch scratch(k, x.n_features);
            const Piece piece(n_queries, n_pieces, t);
            for (int64_t q = piece.begin; q < piece.end; ++q)
              reports[t].add(score_query(x, *z, q, index.data() + q * k, k, label.data(), cost.data(), norm.data(),
                                         n_classes, loss, tol, max_epochs, seed.data(), scratch,
                                         out.data() + q * out.shape(1)));
          });
          SmallReport sum;
          for (const SmallReport& report : reports) sum.add(report);
          return sum;
        });
        return std::make_tuple(total.n_problems, total.n_late, total.n_iter, total.worst);
      },
      nb::arg("rows"), nb::arg("queries"), nb::arg("index"), nb::arg("label"), nb::arg("cost"), nb::arg("norm"),
      nb::arg("n_classes"), nb::arg("power"), nb::arg("tol"), nb::arg("max_epochs"), nb::arg("seed"),
      nb::arg("out").noconvert(),
      nb::arg("n_threads") = 1,
      "Scores of linear SVMs on the neighbours of each query; returns (problems, of which late, epochs, worst gap).");
}

}  // namespace svmosaic
