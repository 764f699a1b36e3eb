"""Graph convolutional networks in PyTorch; `options` needs no PyTorch, the modules that compute are loaded late."""
