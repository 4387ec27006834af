"""Late import of matplotlib, and colors."""

# Okabe and Ito's colors, which readers of all kinds of color vision can tell apart; black is for lines and text.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")


def pyplot(name):
    """Import matplotlib.pyplot, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib: pip install matplotlib") from error
    return plt


def class_colors(n_classes) -> list[str]:
    """Different colors: Okabe and Ito's eight, then darker and lighter shades of them."""
    colors = []
    for k in range(n_classes):
        base, shade = PALETTE[k % len(PALETTE)], (1.0, 0.55, 1.45)[(k // len(PALETTE)) % 3]
        parts = [int(base[i : i + 2], 16) for i in (1, 3, 5)]
        parts = [round(p * shade) if shade <= 1 else round(255 - (255 - p) / shade**2) for p in parts]
        colors.append("#" + "".join(f"{p:02x}" for p in parts))
    return colors
