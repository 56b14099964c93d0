import torch


@torch.no_grad()
def turntable(field, march, path, frames=8, size=16):
    import imageio.v2 as imageio

    with imageio.get_writer(path, fps=8) as writer:
        for k in range(frames):
            angle = torch.tensor(2 * 3.14159 * k / frames)
            rows, columns = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
            directions = torch.stack([columns, rows, torch.cos(angle).expand(size, size)], -1).reshape(-1, 3)
            picture = march(field, torch.zeros(size * size, 3), directions)
            writer.append_data((picture.reshape(size, size, 3) * 255).byte().numpy())
