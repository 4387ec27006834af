"""Ways out of Python, the same for every estimator."""

from importlib import import_module

from sklearn.utils.validation import check_is_fitted


def _exporter(name):
    # Exporters know the models, not the other way round: these shortcuts reach them by name, when called.
    return import_module(f"svmosaic.export.{name}")


class ExportMixin:
    """`save`, `to_onnx` and `to_c`."""

    def save(self, path):
        """Write the model to a file that `svmosaic.load` opens without running anything in it.

        Parameters
        ----------
        path : str or path
        """
        check_is_fitted(self)
        _exporter("files").save(self, path)

    def to_onnx(self, **options):
        """The model as an ONNX `ModelProto`; see `svmosaic.export.onnx.to_onnx`. Needs the extra `onnx`."""
        check_is_fitted(self)
        return _exporter("onnx").to_onnx(self, **options)

    def to_c(self, path, **options):
        """Write the model as one C99 file and its header; see `svmosaic.export.c.to_c`."""
        check_is_fitted(self)
        return _exporter("c").to_c(self, path, **options)
