"""What the graph adds: four methods on the same hidden counties

The poverty rate of every third county of Georgia, predicted from neighbours'
outcomes, own features, features of the neighbourhood, or all of them.
"""

import geopandas
import pandas as pd
from libpysal import examples
from matplotlib import pyplot as plt

import graphmrf as gm

counties = geopandas.read_file(examples.get_path("G_utm.shp"))
features = counties[["PctRural", "PctBach", "PctEld", "PctFB", "PctBlack"]]
known = counties["PctPov"].mask(counties.index % 3 == 0)
methods = {
    "neighbours' outcomes (LP)": gm.LabelPropagation(),
    "own features (LR)": gm.LinearRegression(),
    "features of the neighbourhood (LGC)": gm.LinearGraphConvolution(),
    "all (LGC/RP)": gm.ResidualPropagation(gm.LinearGraphConvolution()),
}
graph, r2 = gm.Graph.from_polygons(counties), {}
for name, model in methods.items():
    X = None if name.endswith("(LP)") else features
    r2[name] = model.fit(graph, X, known).score(y=counties["PctPov"])

figure, axis = plt.subplots(figsize=(5.5, 2.2))
bars = axis.barh(list(r2)[::-1], pd.Series(r2)[::-1])
axis.bar_label(bars, fmt="%.2f", padding=3)
axis.set(xlabel="R² on the hidden counties", xlim=(0, 1))
