// Passes over the rows, and kernels of the second-order solver.
#include "bind.hpp"
#include "inverses.hpp"
#include "newton.hpp"
#include "products.hpp"

namespace svmosaic {
namespace {

const double* pointer(const std::optional<Vector<const double>>& array, int64_t n, const char* message) {
  if (!array) return nullptr;
  require_length(array->shape(0), n, message);
  return array->data();
}

Response make_response(const std::optional<Vector<const double>>& center, const Vector<const double>& cost,
                       const std::optional<Vector<const double>>& threshold, double scale, int64_t n) {
  require_length(cost.shape(0), n, "cost must have one entry per row");
  return {pointer(center, n, "center must have one entry per row"), cost.data(),
          pointer(threshold, n, "threshold must have one entry per row"), scale};
}

}  // namespace

void bind_newton(nb::module_& m) {
  m.def(
      "margins",
      [](const RowsHandle& rows, const DesignHandle& d, Vector<const int8_t> y, Matrix<const double> v,
         Vector<double> out, int n_threads) {
        require_length(y.shape(0), d.design.n_rows, "y must have one entry per row");
        require_length(out.shape(0), d.design.n_rows, "out must have one entry per row");
        check_weights(rows, d, v);
        nb::gil_scoped_release release;
        rows.visit([&](const auto& x) { margins(x, d.design, y.data(), v.data(), out.data(), n_threads); });
      },
      nb::arg("rows"), nb::arg("design"), nb::arg("y"), nb::arg("weights"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
      "out[r] = y_r f_r in float64.");

  m.def(
      "accumulate",
      [](const RowsHandle& rows, const DesignHandle& d, Vector<const int8_t> y, Vector<const double> weight,
         Matrix<double> out, int n_threads) {
        require_length(y.shape(0), d.design.n_rows, "y must have one entry per row");
        require_length(weight.shape(0), d.design.n_rows, "weight must have one entry per row");
        check_weights(rows, d, out);
        nb::gil_scoped_release release;
        rows.visit([&](const auto& x) { accumulate(x, d.design, y.data(), weight.data(), out.data(), n_threads); });
      },
      nb::arg("rows"), nb::arg("design"), nb::arg("y"), nb::arg("weight"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
      "out = sum_r weight_r y_r (coef_r (x) x_r) in float64.");

  m.def(
      "respond",
      [](std::optional<Vector<const double>> center, Vector<const double> cost,
         std::optional<Vector<const double>> threshold, Vector<double> margin, double reach, Vector<double> alpha,
         Vector<double> curvature, int n_threads, double scale, std::optional<Vector<const double>> change,
         double length) {
        const int64_t n = margin.shape(0);
        const Response response = make_response(center, cost, threshold, scale, n);
        require_length(alpha.shape(0), n, "alpha must have one entry per row");
        require_length(curvature.shape(0), n, "curvature must have one entry per row");
        const double* moved = pointer(change, n, "change must have one entry per row");
        ResponseSums sums;
        {
          nb::gil_scoped_release release;
          sums = respond(response, n, margin.data(), moved, length, reach, alpha.data(), curvature.data(), n_threads);
        }
        return std::make_tuple(sums.loss, sums.dual, sums.proximal);
      },
      nb::arg("center").none(), nb::arg("cost"), nb::arg("threshold").none(), nb::arg("margin").noconvert(),
      nb::arg("reach"), nb::arg("alpha").noconvert(), nb::arg("curvature").noconvert(), nb::arg("n_threads") = 1,
      nb::arg("scale") = 1.0, nb::arg("change").none() = nb::none(), nb::arg("length") = 0.0,
      "Duals that answer the margins, moved by length * change first, in a proximal step, and where the clipping is idle; "
      "returns the losses, what the duals earn less what they pay, and sum_r (alpha_r - center_r)^2 / (scale * cost_r).");

  m.def(
      "evaluate",
      [](const RowsHandle& rows, const DesignHandle& d, Vector<const int8_t> y, Matrix<const double> weights,
         std::optional<Vector<const double>> center, Vector<const double> cost,
         std::optional<Vector<const double>> threshold, double reach, Vector<double> margin, Vector<double> alpha,
         Vector<double> curvature, Matrix<double> out, int n_threads, double scale) {
        const int64_t n = d.design.n_rows;
        const Response response = make_response(center, cost, threshold, scale, n);
        require_length(y.shape(0), n, "y must have one entry per row");
        require_length(margin.shape(0), n, "margin must have one entry per row");
        require_length(alpha.shape(0), n, "alpha must have one entry per row");
        require_length(curvature.shape(0), n, "curvature must have one entry per row");
        check_weights(rows, d, weights);
        check_weights(rows, d, out);
        ResponseSums sums;
        {
          nb::gil_scoped_release release;
          sums = rows.visit([&](const auto& x) {
            return evaluate(x, d.design, y.data(), weights.data(), response, reach, margin.data(), alpha.data(),
                            curvature.data(), out.data(), n_threads);
          });
        }
        return std::make_tuple(sums.loss, sums.dual, sums.proximal);
      },
      nb::arg("rows"), nb::arg("design"), nb::arg("y"), nb::arg("weights"), nb::arg("center").none(), nb::arg("cost"),
      nb::arg("threshold").none(), nb::arg("reach"), nb::arg("margin").noconvert(), nb::arg("alpha").noconvert(),
      nb::arg("curvature").noconvert(), nb::arg("out").noconvert(), nb::arg("n_threads") = 1, nb::arg("scale") = 1.0,
      "Margins of the weights, the duals that answer them as `respond` gives them, and V of these duals in `out`; returns "
      "what `respond` returns.");

  m.def(
      "pull",
      [](std::optional<Vector<const double>> center, Vector<const double> cost,
         std::optional<Vector<const double>> threshold, Vector<const double> margin, Vector<const double> change,
         double step, int n_threads, double scale) {
        const int64_t n = margin.shape(0);
        const Response response = make_response(center, cost, threshold, scale, n);
        require_length(change.shape(0), n, "change must have one entry per row");
        nb::gil_scoped_release release;
        return pull(response, n, margin.data(), change.data(), step, n_threads);
      },
      nb::arg("center").none(), nb::arg("cost"), nb::arg("threshold").none(), nb::arg("margin"), nb::arg("change"),
      nb::arg("step"), nb::arg("n_threads") = 1, nb::arg("scale") = 1.0,
      "What the losses add to the slope along a direction.");

  m.def(
      "active_members",
      [](Vector<const double> curvature, std::optional<Vector<const int32_t>> order, Vector<const int64_t> bounds,
         Vector<int32_t> members, Vector<int64_t> offsets, int n_threads) {
        const int64_t n = curvature.shape(0), n_tiles = static_cast<int64_t>(bounds.shape(0)) - 1;
        require_length(members.shape(0), n, "members must have room for every row");
        require(n_tiles >= 1 && bounds.data()[0] == 0 && bounds.data()[n_tiles] == n,
                "bounds must run from 0 to the number of rows");
        for (int64_t k = 0; k < n_tiles; ++k)
          require(bounds.data()[k] <= bounds.data()[k + 1], "bounds must not decrease");
        require_length(offsets.shape(0), n_tiles + 1, "offsets must be as long as bounds");
        if (order) require_length(order->shape(0), n, "order must have one entry per row");
        nb::gil_scoped_release release;
        return active_members(curvature.data(), order ? order->data() : nullptr, bounds.data(), n_tiles, members.data(),
                              offsets.data(), n_threads);
      },
      nb::arg("curvature"), nb::arg("order").none(), nb::arg("bounds"), nb::arg("members").noconvert(),
      nb::arg("offsets").noconvert(), nb::arg("n_threads") = 1,
      "Rows with curvature, tile by tile, and where each tile's begin; their number.");

  m.def(
      "tile_hessians",
      [](const RowsHandle& rows, const DesignHandle& d, Vector<const int32_t> members, Vector<const int64_t> offsets,
         Vector<const double> weight, Array<double, nb::ndim<3>> out, int n_threads) {
        const int64_t n_tiles = static_cast<int64_t>(offsets.shape(0)) - 1, size = rows.n_features() + 1;
        require(n_tiles >= 1 && offsets.data()[0] == 0 &&
                    offsets.data()[n_tiles] == static_cast<int64_t>(members.shape(0)),
                "offsets must run from 0 to the number of members");
        for (int64_t k = 0; k < n_tiles; ++k)
          require(offsets.data()[k] <= offsets.data()[k + 1], "offsets must not decrease");
        require_length(weight.shape(0), d.design.n_rows, "weight must have one entry per row");
        require(static_cast<int64_t>(out.shape(0)) == n_tiles && static_cast<int64_t>(out.shape(1)) == size &&
                    static_cast<int64_t>(out.shape(2)) == size,
                "out must have shape (n_tiles, n_features + 1, n_features + 1)");
        check_design(rows, d);
        nb::gil_scoped_release release;
        rows.visit([&](const auto& x) {
          tile_hessians(x, d.design, members.data(), offsets.data(), n_tiles, weight.data(), out.data(),
                        n_threads);
        });
      },
      nb::arg("rows"), nb::arg("design"), nb::arg("members"), nb::arg("offsets"), nb::arg("weight"), nb::arg("out").noconvert(),
      nb::arg("n_threads") = 1, "out[k] = sum of weight_r (x_r, bias)(x_r, bias)^T over the members of tile k.");

  m.def(
      "curved_product",
      [](const RowsHandle& rows, const DesignHandle& d, Vector<const double> curvature, Matrix<const double> vector,
         Matrix<double> out, int n_threads) {
        require_length(curvature.shape(0), d.design.n_rows, "curvature must have one entry per row");
        check_weights(rows, d, vector);
        check_weights(rows, d, out);
        nb::gil_scoped_release release;
        rows.visit([&](const auto& x) {
          curved_product(x, d.design, curvature.data(), vector.data(), out.data(), n_threads);
        });
      },
      nb::arg("rows"), nb::arg("design"), nb::arg("curvature"), nb::arg("vector"), nb::arg("out").noconvert(),
      nb::arg("n_threads") = 1, "out = sum_r curvature_r f_r(vector) (coef_r (x) x_r) in float64.");

  m.def(
      "tile_inverses",
      [](Array<const double, nb::ndim<3>> matrices, double scale, Array<double, nb::ndim<3>> out, int n_threads,
         bool of_factors) {
        const int64_t n_tiles = matrices.shape(0), size = matrices.shape(1);
        require(static_cast<int64_t>(matrices.shape(2)) == size, "matrices must be square");
        require(static_cast<int64_t>(out.shape(0)) == n_tiles && static_cast<int64_t>(out.shape(1)) == size &&
                    static_cast<int64_t>(out.shape(2)) == size,
                "out must have the shape of matrices");
        nb::gil_scoped_release release;
        tile_inverses(matrices.data(), n_tiles, size, scale, of_factors, out.data(), n_threads);
      },
      nb::arg("matrices"), nb::arg("scale"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1,
      nb::arg("of_factors") = false,
      "out[k] = (I + scale * matrices[k])^-1, or the inverse of its lower Cholesky factor; NaN where that is not positive "
      "definite.");
}

}  // namespace svmosaic
