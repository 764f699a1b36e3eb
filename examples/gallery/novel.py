"""A novel as a graph: how often does a character meet others?

The 77 characters of Les Misérables, joined if they appear together. The number
of meetings of every other one is predicted from whom they meet.
"""

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import graphmrf as gm

novel = nx.les_miserables_graph()
meetings = pd.Series(dict(novel.degree(weight="weight"))).transform("log")
friends = pd.DataFrame({"friends": np.log(pd.Series(dict(novel.degree())))})
known = meetings.mask(np.arange(len(meetings)) % 2 == 1)

model = gm.ResidualPropagation(gm.LinearGraphConvolution()).fit(novel, friends, known)
mean, std = model.predict(return_std=True)
top = pd.Series(mean)[known.isna()].nlargest(10).index[::-1]

figure, axis = plt.subplots(figsize=(5.5, 3.6))
axis.hlines(top, np.exp((mean - 1.64 * std)[top]), np.exp((mean + 1.64 * std)[top]), alpha=0.4, linewidth=4)
axis.plot(np.exp(mean[top]), top, "o", label="predicted")
axis.plot(np.exp(meetings[top]), top, "x", color="black", label="true")
axis.set_xlabel("meetings in the novel")
axis.legend(loc="lower right")
