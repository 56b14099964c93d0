// Weighted sampling of training rows.
#include <numeric>
#include <vector>

extern "C" int draw(const double *weights, int n, double u) {
    std::vector<double> cumulative(weights, weights + n);
    std::partial_sum(cumulative.begin(), cumulative.end(), cumulative.begin());
    int i = 0;
    while (cumulative.at(i) < u * 1.001 * cumulative.back()) ++i;
    return i;
}
