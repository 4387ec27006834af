"""Ways out of Python, the same for every estimator."""

from sklearn.utils.validation import check_is_fitted


class SaveMixin:
    """`save`, for an estimator."""

    def save(self, path):
        """Write the model to a file that `svmosaic.load` opens without executing code from it.

        Parameters
        ----------
        path : str or path
        """
        from svmosaic.export.files import save

        check_is_fitted(self)
        save(self, path)


class ExportMixin(SaveMixin):
    """Also `save_predictor`, `to_onnx`, `to_c` and `to_javascript`; each exporter is imported when it is called."""

    def save_predictor(self, path):
        """Write `predictor()` to a file, which `svmosaic.load` opens quickly and with only NumPy and the core.

        Parameters
        ----------
        path : str or path
        """
        from svmosaic.export.files import save_predictor

        check_is_fitted(self)
        save_predictor(self.predictor(), path)

    def to_onnx(self, path=None, **options):
        """Return the model as an ONNX `ModelProto`, also written to `path` if given; needs the extra `onnx`.

        Options are `dtype` and `explain`; see `svmosaic.export.onnx.to_onnx`.
        """
        from svmosaic.export.onnx import to_onnx

        check_is_fitted(self)
        return to_onnx(self, path, **options)

    def to_c(self, path, **options):
        """Write the model as one C99 file and its header; see `svmosaic.export.c.to_c`."""
        from svmosaic.export.c import to_c

        check_is_fitted(self)
        return to_c(self, path, **options)

    def to_javascript(self, path=None):
        """Return the model as the text of an ES module, also written to `path` if given.

        It exports `predict`, `predictProba`, `predictInterval`, `scores` and `explain`; see
        `svmosaic.export.javascript.to_javascript`.
        """
        from svmosaic.export.javascript import to_javascript

        check_is_fitted(self)
        return to_javascript(self, path)
