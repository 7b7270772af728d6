"""Run with `python -m unittest`. One of these fails, because of a bug in calculator.py."""

import unittest

from calculator import largest, mean, total


class CalculatorTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)

    def test_mean(self):
        self.assertEqual(mean([2, 4, 6]), 4)
        self.assertEqual(mean([]), 0)

    def test_largest(self):
        self.assertEqual(largest([3, 9, 4]), 9)


if __name__ == "__main__":
    unittest.main()
