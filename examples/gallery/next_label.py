"""Which nodes to label next

Ten of 100 cells of a grid are labelled. The stars are the five cells whose
labels would reduce the uncertainty of all others most: far from known ones,
and not at the edge.
"""

import networkx as nx
import numpy as np
from matplotlib import pyplot as plt

import graphmrf as gm

side = 10
graph = gm.Graph.from_networkx(nx.grid_2d_graph(side, side))
mrf = gm.GaussianMRF(np.ones((1, 1)), np.array([50.0]))
labelled = np.zeros(side**2, dtype=bool)
labelled[np.random.default_rng(2).choice(side**2, 10, replace=False)] = True

values = np.where(labelled, mrf.sample(graph, random_state=1)[0, :, 0], np.nan)[:, None]
std = mrf.condition(graph, values).std[:, 0]
best = mrf.suggest(graph, 0, labelled, 5)

figure, axis = plt.subplots(figsize=(4.2, 3.6))
image = axis.imshow(np.where(labelled, np.nan, std).reshape(side, side), cmap="Purples")
figure.colorbar(image, label="standard deviation")
for nodes, style, words in ((np.flatnonzero(labelled), "ko", "labelled"), (best, "r*", "label next")):
    axis.plot(nodes % side, nodes // side, style, markersize=8, label=words)
axis.legend(ncols=2, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0))
axis.set_axis_off()
