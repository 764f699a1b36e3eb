"""What a graph convolutional network is made of; the modules that compute are loaded late, for they need PyTorch."""
