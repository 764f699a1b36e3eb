"""The authors' own random splits: permutations of Julia's generator, from the seeds in their code.

Until version 1.10 Julia's ``MersenneTwister`` was the double-precision SIMD-oriented Fast Mersenne Twister, dSFMT-19937
(Saito and Matsumoto, 2009). Here it is again in whole numbers of Python, a few milliseconds for each permutation.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from graphmrf._typing import Bools, Floats, Ints

TRAINING = 0.3
"""Share of labelled nodes, the paper's."""
_WORD, _LONG = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
# The parameters of dSFMT for the exponent 19937.
_BLOCKS, _SHIFTED, _LAG = 191, 117, 11
_MASKS = (0x000FFAFFFFFFFB3F, 0x000FFDFFFC90FFFD)
_FIXED, _CHECKED = (0x90014964B32F4329, 0x3B8D12AC548A7C7A), (0x3D84E1AC0DC82880, 1)
_MANTISSA, _EXPONENT = 0x000FFFFFFFFFFFFF, 0x3FF0000000000000


def authors_split(n: int, share: float, seed: int) -> Bools:
    """Return a mask (n,) of the labelled nodes in one of the authors' splits, the first of a random permutation.

    Their share is rounded up; seeds are 1 to 10 in the paper.
    """
    return np.isin(np.arange(n), authors_parts(np.arange(n), (share, 1.0 - share), seed)[0])


def hide(y: Floats, seed: int, share: float = TRAINING) -> tuple[Bools, Floats]:
    """Return the mask of the labelled nodes in one of the authors' splits, and the outcome with NaN at the others."""
    labelled = authors_split(y.size, share, seed)
    return labelled, np.where(labelled, y, np.nan)


def authors_parts(items: Ints, shares: Sequence[float], seed: int) -> list[Ints]:
    """Return items in random order, cut into parts of these shares: splits, and the folds of a cross-validation.

    Examples
    --------
    >>> [part.tolist() for part in authors_parts(np.arange(4), (0.5, 0.5), 1234)]
    [[1, 0], [3, 2]]
    """
    ends = np.ceil(np.cumsum(shares) * len(items)).astype(np.intp)
    return np.split(items[julia_permutation(len(items), seed)], ends[:-1])


@lru_cache(maxsize=64)  # the splits and folds of one experiment: every method asks for them again
def julia_permutation(n: int, seed: int) -> Ints:
    """Return ``randperm(MersenneTwister(seed), n) .- 1``.

    Examples
    --------
    >>> (julia_permutation(4, 1234) + 1).tolist()  # the example of Julia's documentation
    [2, 1, 4, 3]
    """
    draws, order, mask = julia_bits(seed), np.zeros(n, dtype=np.intp), 3
    for i in range(1, n):
        j = next(draws) & mask
        while j > i:
            j = next(draws) & mask
        order[i], order[j] = order[j], i
        mask = 2 * mask + 1 if i == mask else mask
    return order


def julia_bits(seed: int) -> Iterator[int]:
    """Yield the bits of double-precision numbers that are uniform between 1 and 2.

    Examples
    --------
    >>> np.array(next(julia_bits(0)), dtype=np.uint64).view(np.float64) - 1.0  # rand(MersenneTwister(0))
    np.float64(0.8236475079774124)
    """
    state, lung = _seeded(seed)
    while True:
        for i in range(_BLOCKS):
            other = (i + _SHIFTED) % _BLOCKS
            lung = [
                ((state[2 * i + k] << 19) & _LONG)
                ^ (lung[1 - k] >> 32)
                ^ ((lung[1 - k] << 32) & _LONG)
                ^ state[2 * other + k]
                for k in (0, 1)
            ]
            for k in (0, 1):
                state[2 * i + k] ^= (lung[k] >> 12) ^ (lung[k] & _MASKS[k])
        yield from state


def _seeded(seed: int) -> tuple[list[int], list[int]]:
    """Return the state and the lung of the generator seeded with a number of 32 or 64 bits."""
    words = _mixed([seed & _WORD, *([seed >> 32] if seed >> 32 else [])], (_BLOCKS + 1) * 4)
    doubles = [low | (high << 32) for low, high in zip(words[::2], words[1::2], strict=True)]
    state, lung = [(each & _MANTISSA) | _EXPONENT for each in doubles[:-2]], doubles[-2:]
    checks = ((part ^ fixed) & checked for part, fixed, checked in zip(lung, _FIXED, _CHECKED, strict=True))
    if sum(each.bit_count() for each in checks) % 2 == 0:  # else the period might be short
        lung[1] ^= 1
    return state, lung


def _mixed(key: Sequence[int], size: int) -> list[int]:
    """Return `size` words that depend on every word of the key, by the initialisation of the Mersenne Twister."""
    s, middle = [0x8B8B8B8B] * size, (size - _LAG) // 2
    for step, value in enumerate([len(key), *key, *[0] * (size - 1 - len(key))]):
        i, j = step % size, (step + middle) % size
        r = s[i] ^ s[j] ^ s[i - 1]
        r = ((r ^ (r >> 27)) * 1664525) & _WORD
        s[j] = (s[j] + r) & _WORD
        r = (r + value + i) & _WORD
        s[(j + _LAG) % size] = (s[(j + _LAG) % size] + r) & _WORD
        s[i] = r
    for i in range(size):
        j = (i + middle) % size
        r = (s[i] + s[j] + s[i - 1]) & _WORD
        r = ((r ^ (r >> 27)) * 1566083941) & _WORD
        s[j] ^= r
        r = (r - i) & _WORD
        s[(j + _LAG) % size] ^= r
        s[i] = r
    return s
