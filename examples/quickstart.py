"""Predict the missing rents of the bundled city from Python."""

import graphmrf as gm

files = gm.datasets.example()
city = gm.read(files.nodes, files.edges, id="district")
table = city.frame.set_index("district")
X, rent = table[["income", "green", "minutes"]], table["rent"]  # NaN: to predict

model = gm.ResidualPropagation(gm.LinearGraphConvolution())
table["prediction"], table["std"] = model.fit(city.graph, X, rent).predict(return_std=True)

print(city.graph)
print(f"smoothing level {model.alpha_}, effects {model.base_.coef_.round(2).to_dict()}")
print(table.loc[["D0003", "D0004"], ["prediction", "std"]].round(1))


# Graph(n_nodes=1000, n_edges=2922, unweighted, ids D0001, D0002, D0003, ...)
# smoothing level 0.8, effects {'income': 0.8, 'green': 0.83, 'minutes': -0.62}
#           prediction  std
# district
# D0003           13.4  1.6
# D0004           10.7  1.5
