#include "tandem/kernels/float32_products.h"

#include <atomic>

namespace tandem::kernels {

namespace {
std::atomic<Float32Products> current{Float32Products::full};
}

Float32Products float32_products() { return current; }
void set_float32_products(Float32Products products) { current = products; }

}  // namespace tandem::kernels
