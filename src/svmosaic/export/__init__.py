"""Models that leave Python: ONNX, C, and files."""
