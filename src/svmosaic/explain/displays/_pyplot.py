"""Late import of matplotlib, and colors."""

from svmosaic.explain.displays._fitted import PALETTE

MARKERS = "osD^vPX*"
# How dark the colors of a second and third round through the palette are.
_SHADES = (1.0, 0.55, 1.45)


def pyplot(name):
    """Import matplotlib.pyplot, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib: pip install matplotlib") from error
    return plt


def class_colors(n_classes) -> list[str]:
    """As many colors: Okabe and Ito's eight, then darker and lighter shades of them."""
    colors = []
    for k in range(n_classes):
        base = PALETTE[k % len(PALETTE)]
        shade = _SHADES[(k // len(PALETTE)) % len(_SHADES)]
        parts = [int(base[i : i + 2], 16) for i in (1, 3, 5)]
        parts = [round(p * shade) if shade <= 1 else round(255 - (255 - p) / shade**2) for p in parts]
        colors.append("#" + "".join(f"{p:02x}" for p in parts))
    return colors
