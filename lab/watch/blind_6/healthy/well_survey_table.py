"""Predicts the yield of wells from a survey with gaps; gaps are filled with medians and marked."""
import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

SEED = 42
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)


def survey(count):
    depth = rng.gamma(4, 20, count)
    slope = rng.normal(0, 4, count)
    clay = rng.beta(2, 3, count)
    rain = rng.normal(700, 90, count)
    salt = rng.exponential(1.5, count)
    frame = pd.DataFrame({"depth": depth, "slope": slope, "clay": clay, "rain": rain, "salt": salt})
    target = 2 * np.tanh((depth - 80) / 30) - 3 * clay * (rain - 700) / 90 + 0.5 * slope - salt
    for column in frame:
        frame.loc[rng.random(count) < 0.06, column] = -9999.0  # the code that the surveyors enter
    frame["yield"] = target + rng.normal(0, 0.3, count)
    return frame


def features(frame, medians=None):
    columns = frame.drop(columns="yield")
    columns = columns.replace(-9999.0, np.nan)
    gaps = columns.isna().to_numpy(dtype=np.float32)
    medians = columns.median() if medians is None else medians
    return columns.fillna(medians).to_numpy(dtype=np.float32), gaps, medians


train, test = survey(1600), survey(800)
values, gaps, medians = features(train)
test_values, test_gaps, _ = features(test, medians)
scaler = StandardScaler().fit(values)
center, spread = train["yield"].mean(), train["yield"].std()
x = torch.tensor(np.hstack([scaler.transform(values), gaps]), dtype=torch.float32)
y = torch.tensor(((train["yield"] - center) / spread).to_numpy(), dtype=torch.float32)
test_x = torch.tensor(np.hstack([scaler.transform(test_values), test_gaps]), dtype=torch.float32)

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
for epoch in range(25):
    model.train()
    total = 0.0
    for index in torch.randperm(len(x)).split(64):
        loss = nn.functional.mse_loss(model(x[index]).squeeze(1), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            found = model(test_x).squeeze(1).numpy() * spread + center
        rmse = np.sqrt(np.mean((found - test["yield"].to_numpy()) ** 2))
        print(f"epoch {epoch + 1}: loss {total / len(x):.4f}, test rmse {rmse:.4f}")
