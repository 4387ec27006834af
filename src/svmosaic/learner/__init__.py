"""Gates that are learned together with their tiles, by the gradient of the loss."""
