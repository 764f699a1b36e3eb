"""What a smoothing level looks like

A draw of the model on a grid at four smoothing levels, from independent noise
to large patches. For your data the level is estimated.
"""

import networkx as nx
import numpy as np
from matplotlib import pyplot as plt

import graphmrf as gm

side = 50
graph = gm.Graph.from_networkx(nx.grid_2d_graph(side, side))

figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
for axis, alpha in zip(axes, (0.0, 0.8, 0.98, 0.999), strict=True):
    omega = alpha / (1 - alpha)
    draw = gm.GaussianMRF(np.ones((1, 1)), np.array([omega])).sample(graph, random_state=3)
    axis.imshow(draw[0, :, 0].reshape(side, side), cmap="RdBu")
    axis.set_title(f"alpha = {alpha:g}")
    axis.set_axis_off()
