"""What carries a prediction: features, neighbours, or both

Three columns of Georgia's counties, each predicted from the others. The bars
show the share of the variation that each part explains.
"""

import geopandas
import pandas as pd
from libpysal import examples
from matplotlib import pyplot as plt

import graphmrf as gm

counties = geopandas.read_file(examples.get_path("G_utm.shp"))
columns = ["PctBach", "PctRural", "PctEld", "PctFB", "PctPov", "PctBlack"]
graph, shares = gm.Graph.from_polygons(counties), {}
for target in ("PctBlack", "PctPov", "PctBach"):
    known = counties[target].mask(counties.index % 5 == 0)
    features = counties[[name for name in columns if name != target]]
    shares[target] = gm.GraphRegressor().fit(graph, features, known).shares_

figure, axis = plt.subplots(figsize=(7.5, 2.4))
pd.DataFrame(shares).T.plot.barh(stacked=True, ax=axis, width=0.75, cmap="viridis")
axis.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small", frameon=False)
axis.set(xlabel="share of the variation", xlim=(0, 1))
figure.tight_layout()
