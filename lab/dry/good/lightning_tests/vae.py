"""A VAE with an adversary, optimized by hand in Lightning."""
import argparse
import os

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers[:-1])


class VAE(L.LightningModule):
    def __init__(self, inputs: int = 16, latent: int = 4, beta: float = 0.1, warm: int = 3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.encoder, self.decoder = mlp(inputs, 64, 2 * latent), mlp(latent, 64, inputs)
        self.critic = mlp(inputs, 64, 1)
        self.example_input_array = torch.zeros(2, inputs)

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp() if self.training else mean
        return self.decoder(z), mean, log_var

    def training_step(self, batch, index):
        (x,) = batch
        generator, critic = self.optimizers()
        out, mean, log_var = self(x)
        kl = -0.5 * (1 + log_var - mean.square() - log_var.exp()).mean()
        loss = F.mse_loss(out, x) + self.hparams.beta * kl
        if self.current_epoch >= self.hparams.warm:
            loss = loss - 0.01 * self.critic(out).mean()
        generator.zero_grad()
        self.manual_backward(loss)
        self.clip_gradients(generator, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        generator.step()
        gap = F.softplus(-self.critic(x)).mean() + F.softplus(self.critic(out.detach())).mean()
        critic.zero_grad()
        self.manual_backward(gap)
        critic.step()
        self.log_dict({"train/loss": loss, "train/gap": gap}, on_epoch=True, on_step=False)

    def on_train_epoch_end(self):
        for schedule in self.lr_schedulers():
            schedule.step()

    def validation_step(self, batch, index):
        self.log("val_error", F.mse_loss(self(batch[0])[0], batch[0]))

    def test_step(self, batch, index, dataloader_idx=0):
        self.log("test_error", F.mse_loss(self(batch[0])[0], batch[0]), add_dataloader_idx=True)

    def predict_step(self, batch, index):
        return self(batch[0])[1]

    def configure_optimizers(self):
        body = [*self.encoder.parameters(), *self.decoder.parameters()]
        optimizers = [torch.optim.Adam(body, 1e-3), torch.optim.Adam(self.critic.parameters(), 1e-3)]
        return optimizers, [torch.optim.lr_scheduler.ExponentialLR(o, 0.98) for o in optimizers]


def data(count, seed):
    g = torch.Generator().manual_seed(seed)
    mix = torch.randn(4, 16, generator=torch.Generator().manual_seed(0))
    return DataLoader(TensorDataset(torch.tanh(torch.randn(count, 4, generator=g) @ mix)), 32)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--root", default="vae-runs")
    args = p.parse_args()
    L.seed_everything(0)
    keep = ModelCheckpoint(monitor="val_error", filename="{epoch}-{val_error:.3f}", save_top_k=2)
    trainer = L.Trainer(max_epochs=args.epochs, accelerator="auto", devices=1, logger=CSVLogger(args.root),
                        callbacks=[keep], log_every_n_steps=5, enable_progress_bar=False)
    model = VAE()
    trainer.fit(model, data(600, 1), data(100, 2))
    results = trainer.test(model, [data(100, 3), data(50, 4)], ckpt_path="best")
    print(results[0]["test_error/dataloader_idx_0"], results[1]["test_error/dataloader_idx_1"])
    codes = torch.cat(trainer.predict(model, data(64, 5)))
    print(codes.shape, codes.std(0).tolist())
    best = VAE.load_from_checkpoint(keep.best_model_path, map_location="cpu").eval()
    torch.jit.script(best.decoder).save(os.path.join(args.root, "decoder.ts"))
    print(torch.jit.load(os.path.join(args.root, "decoder.ts"))(codes[:2].cpu()).shape)


if __name__ == "__main__":
    main()
