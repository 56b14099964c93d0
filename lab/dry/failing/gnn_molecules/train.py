import random

import torch

from model import Network


def molecule(rng):
    atoms = rng.randint(3, 9)
    elements = torch.tensor([rng.randrange(6) for _ in range(atoms)])
    bonds = torch.tensor([(k, k + 1) for k in range(atoms - 1)]).T
    return elements, torch.cat([bonds, bonds.flip(0)], 1), elements.float().mean()


def batch(molecules):
    offset, elements, edges, graph, energy = 0, [], [], [], []
    for k, (atoms, bonds, target) in enumerate(molecules):
        elements.append(atoms)
        edges.append(bonds + offset)
        graph.append(torch.full((len(atoms),), k))
        energy.append(target)
        offset += len(atoms)
    return torch.cat(elements), torch.cat(edges, 1), torch.cat(graph), torch.stack(energy)


def main():
    rng = random.Random(0)
    data = [molecule(rng) for _ in range(256)]
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    for epoch in range(10):
        rng.shuffle(data)
        for start in range(0, len(data), 16):
            elements, edges, graph, energy = batch(data[start : start + 16])
            loss = (network(elements, edges, graph, len(energy)) - energy).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
