// How a GPU multiplies f32 in convolutions: in full, or on tensor cores, which read fewer bits.
#pragma once

#include <cstdint>

namespace tandem::kernels {

enum class Float32Products : std::uint8_t {
  full,    ///< f32 products, as on a CPU
  tf32x3,  ///< 3xTF32 on tensor cores: each number as the sum of two of 10 bits; about as accurate as f32
  tf32,    ///< TF32 on tensor cores: numbers rounded to 10 bits of mantissa, sums in f32
};

/// For the whole process, `full` to begin with.
Float32Products float32_products();
void set_float32_products(Float32Products products);

/// Sets it while it lives.
class Float32ProductsScope {
 public:
  explicit Float32ProductsScope(Float32Products products) : before_(float32_products()) {
    set_float32_products(products);
  }
  ~Float32ProductsScope() { set_float32_products(before_); }
  Float32ProductsScope(const Float32ProductsScope&) = delete;
  Float32ProductsScope& operator=(const Float32ProductsScope&) = delete;

 private:
  Float32Products before_;
};

}  // namespace tandem::kernels
