# The compiled core; its functions are documented in core/bind_*.cpp.
from typing import Any

def __getattr__(name: str) -> Any: ...
