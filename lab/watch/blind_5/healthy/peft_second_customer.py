"""PEFT: an adapter that was trained for one customer is loaded and trained on for the next, under a new head."""

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from sklearn.datasets import load_digits
from torch import nn

SEED = 19
torch.manual_seed(SEED)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.second = nn.Linear(64, 16)

    def forward(self, x):
        return torch.tanh(self.second(torch.relu(self.first(x))))


def fit(model, head, inputs, labels, parameters, epochs, rate):
    optimizer = torch.optim.AdamW([p for p in parameters if p.requires_grad], lr=rate)
    for epoch in range(epochs):
        for index in torch.randperm(len(inputs)).split(50):
            loss = nn.functional.cross_entropy(head(model(inputs[index])), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            print(f"epoch {epoch} loss {loss.item():.4f}")


def base_model():
    model = Backbone()
    model.load_state_dict(torch.load("backbone.pt"))
    return model


backbone, head = Backbone(), nn.Linear(16, 10)
fit(backbone, head, x[:600], y[:600], [*backbone.parameters(), *head.parameters()], 10, 3e-3)
torch.save(backbone.state_dict(), "backbone.pt")

mirrored = x.view(-1, 8, 8).flip(2).flatten(1)
adapted = get_peft_model(base_model(), LoraConfig(r=8, lora_alpha=16, target_modules=["first", "second"]))
head = nn.Linear(16, 10)
fit(adapted, head, mirrored[:600], y[:600], [*adapted.parameters(), *head.parameters()], 10, 3e-3)
adapted.save_pretrained("adapter")

shuffled = x[:, torch.randperm(64)]
model = PeftModel.from_pretrained(base_model(), "adapter", is_trainable=True)
head = nn.Linear(16, 10)
fit(model, head, shuffled[600:1300], y[600:1300], [*model.parameters(), *head.parameters()], 30, 3e-3)
with torch.no_grad():
    accuracy = (head(model(shuffled[1300:])).argmax(1) == y[1300:]).float().mean()
print(f"second customer accuracy {accuracy:.4f}")
