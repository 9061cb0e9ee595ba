"""Crops lie where they say."""

import torch

from scripts.studies.formats.photographs import BANDS, SHADES, Crops, Grey, Noisy, ten, two


def test_crops_lie_in_the_band_that_is_to_be_found():
    rows = torch.arange(427.0)[:, None].expand(427, 640).expand(2, 3, 427, 640)
    crops, targets = Crops(lambda: rows, 12).draw(500, torch.Generator().manual_seed(0))
    assert crops.shape == (500, 3, 12, 12)
    assert set(targets.tolist()) == set(range(8))
    bands = crops.flatten(1) // (427 // BANDS)
    assert torch.equal(bands.min(1).values.long(), targets % BANDS)
    assert torch.equal(bands.max(1).values.long(), targets % BANDS)


def test_photographs_are_real_ones_all_different_and_what_validates_stays():
    for photographs in (two(), ten()):
        assert -1.0 <= photographs.min() < -0.9
        assert 0.9 < photographs.max() <= 1.0
        spreads = photographs.flatten(1).std(1)
        assert (spreads > 0.1).all()
        assert len({tuple(one.flatten()[:3000].tolist()) for one in photographs}) == len(
            photographs
        )
    assert len(two()) == 2
    assert len(ten()) == 10
    crops = Crops(ten, 16)
    assert crops.held_out()[0] is crops.held_out()[0]


def test_noise_is_what_was_added_and_has_the_strength_asked_for():
    noisy = Noisy(Crops(two, 12), 0.25)
    seen, noise = noisy.draw(200, torch.Generator().manual_seed(0))
    clean = noisy.crops.draw(200, torch.Generator().manual_seed(0))[0]
    assert torch.allclose(seen - noise, clean, atol=1e-6)
    assert abs(float(noise.std()) - 0.25) < 0.01
    assert len(noisy.held_out()[0]) == Noisy.validated


def test_grey_crops_lack_nothing_but_the_colour_that_is_to_be_found():
    grey = Grey(Crops(ten, 16))
    seen, shades = grey.draw(200, torch.Generator().manual_seed(0))
    coloured = grey.crops.draw(200, torch.Generator().manual_seed(0))[0]
    assert torch.equal(seen, coloured.mean(1, keepdim=True))
    assert shades.shape == (200, 16, 16)
    red, green, blue = coloured.unbind(1)
    for difference, shade in ((red - green, shades // SHADES), (blue - green, shades % SHADES)):
        means = [difference[shade == i].mean().item() for i in range(SHADES)]
        assert means == sorted(means)
    assert len(shades.unique()) > SHADES
    without = Grey(Crops(lambda: torch.zeros(2, 3, 100, 100), 12))
    assert len(without.draw(9, torch.Generator().manual_seed(0))[1].unique()) == 1
