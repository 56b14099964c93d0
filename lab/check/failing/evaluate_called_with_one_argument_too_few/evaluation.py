import torch


@torch.no_grad()
def evaluate(model, graph, device):
    model.to(device).eval()
    logits = model(graph.features.to(device), graph.adjacency.to(device))
    predicted = logits.argmax(1).cpu()
    test = ~graph.train
    return (predicted[test] == graph.labels[test]).float().mean().item()
