// All layers.
#pragma once

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/convolution.h"
#include "layers/linear.h"
#include "layers/pooling.h"
#include "layers/residual.h"
#include "layers/sequential.h"
