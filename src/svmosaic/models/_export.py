"""Ways out of Python, the same for every estimator."""

from sklearn.utils.validation import check_is_fitted


class ExportMixin:
    """`save`, `to_onnx` and `to_c`. Exporters are imported when they are called: some need extra packages."""

    def save(self, path):
        """Write the model to a file that `svmosaic.load` opens without running anything in it.

        Parameters
        ----------
        path : str or path
        """
        from svmosaic.export.files import save

        check_is_fitted(self)
        save(self, path)

    def to_onnx(self, **options):
        """The model as an ONNX `ModelProto`; see `svmosaic.export.onnx.to_onnx`. Needs the extra `onnx`."""
        from svmosaic.export.onnx import to_onnx

        check_is_fitted(self)
        return to_onnx(self, **options)

    def to_c(self, path, **options):
        """Write the model as one C99 file and its header; see `svmosaic.export.c.to_c`."""
        from svmosaic.export.c import to_c

        check_is_fitted(self)
        return to_c(self, path, **options)
