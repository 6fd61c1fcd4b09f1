"""The package behind *The Physics of Learning*: closed forms, theories, simulators and the services the chapters share.

Dependencies run one way, from closed forms to theories to simulators; the services stand apart::

    gaussian, hermite, sampling     averages over Gaussian variables                (book: Gaussian averages)
      -> langevin, committee        one theory each                                 (book: Langevin dynamics; On-line learning)
        -> stability                fixed points of committee and their stability   (book: On-line learning)
        -> trajectories, online     simulators that the theories are held against   (the same chapters)
    spectra                         covariances with a power-law spectrum; overlaps in each eigenspace       (part III: Scaling laws)
      -> linear_student             a linear student, exact at any learning rate and size, with its simulator linear_descent
      -> feature_scaling            a linear student that may train only some of its weights, in the eigenbasis
        -> feature_bases            the same in any basis, and the law for a random one
      -> schedules                  a linear student whose learning rate changes in stages
      -> given_inputs               a linear student on inputs drawn from a data set; uses regression of part II
      -> structured                 the committee on structured inputs, resolved by eigenspace; uses committee
        -> linearization            their Jacobian at any state, all units and eigenspaces
        -> site_symmetric           the same if all units are alike: any number of units at the price of one
        -> gram                     descent in the space of Gram matrices, exact in law at finite size
      -> plateau, late_phase        fixed points of the structured equations and their stability; use committee
        -> teacher_span             the late phase of students inside the span of their teachers
        -> near_teacher             erf units near any teacher, exact for the mean square at any number of inputs; uses linear
    regression                      a data set as minibatch descent sees it         (book, part II: Linear learning as a stochastic process)
      -> linear                     stationary covariance, learning-rate threshold  (The exact identity)
        -> linear_relations         relations, circulation, noise floors; uses langevin    (Real data)
        -> linear_extensions        momentum and preconditioning                    (Momentum, currents, temperature)
      -> minibatches, descent       how minibatches are drawn; the simulator, which starts from linear and linear_extensions
      -> convolution                a convolutional layer in front, with its simulator convolution_descent  (Finer relations)
      -> sigmoid                    a nonlinear unit, with its simulator sigmoid_descent; uses langevin     (Finer relations)
    two_points                      two inputs of a network: a, b, w in closed form    (part IV: Representations)
      -> two_points_limits          their end, decay rates, plateau, regimes, identical targets
        -> random_features          the law of the end at random starts; gains with depth
      -> two_points_exact           the same without the no-rotation assumption, as vectors
        -> two_points_layered       rates that change with the weights, as in deep linear nets
      -> rate_fit                   effective learning rates fitted to the curves of a network
    pairwise, mds                   hidden distances of all pairs: weighing, multi-point metric, baselines; classical multidimensional scaling
    nets                            networks of the experiments, weights of many trials stacked, gradients by hand
      -> training                   descent or Adam for many trials side by side, and the observables of a pair of points
      -> tangent_kernel             effective learning rates read off the gradients, without a fit
      -> architectures              settings of the source's tables, as data
        -> trials                   many random starts of an experiment, resumable, and the fitted rates of each
    tasks                           data sets of these experiments: two points, exclusive or, blobs in two contexts
    compositions                    a neuron's loss after its activation, with slopes    (part V: Criticality)
      -> amplitude                  the step of one neuron as a function of its input; local exponents
        -> branches                 monotone branches, folds, the inputs of a given step
          -> step_density           law of the steps: densities, exponents, curves
          -> step_probabilities     dead inputs, branches, distribution function
          -> step_laws              closed forms: bias steps, folds, poles; uses step_density
      -> neuron_gradient            mean gradient, Hessian and noise by quadrature; who gets no gradient
        -> equilibria               where learning rests, closed forms, linear fluctuations around it
        -> neuron_descent           replicas of stochastic descent, their real steps, and how they die
    power_laws                      how far a power law reaches; exponents of samples and how well they hold
      -> lognormal_law              a lognormal seen as a power law: decades, share, detectability
      -> step_batches               what averaging over a batch leaves of a power law of steps
    loss_exponents                  exponents that belong to a loss by its form alone; which losses are exact
    sample_gradients                steps of single samples of a neuron or tanh layer, their Jacobians and local exponents; uses data
    area_formula                    density of steps on their surface, singular frames, how far one-dimensional maps describe them
    nngp                            infinitely wide two-layer networks: kernels, their series, their spectrum on the sphere   (part VI: Fields)
      -> random_networks            networks of finite width: outputs, excess kurtosis, characteristic functional
    gp_regression                   posterior with one ridge or one per sample; leave-one-out, cross-validation, measured ridge
      -> membrane                   the same posterior as the action of a field on a grid, with its gradient
    hmc                             Hamiltonian Monte Carlo over many chains; autocorrelation times and errors
      -> network_posterior          two-layer Bayesian networks of finite width, readouts integrated out
        -> langevin_training        the same posterior by noisy descent with decay, its error in the step and how to remove it
        -> kernel_adaptation        weights of two layers as one Gaussian adapted to given data; the scaling competitor; uses nngp
          -> three_layers           random networks of three layers, the second layer's adapted kernel
            -> three_layer_posterior  the same by sampling both hidden layers, readouts integrated out
    effective_ridge                 which modes P samples teach: κ, learnabilities, closures compared
      -> learning_curve             bias, variance, errors, exponents, benign overfitting
    feature_regression              the experiment: ridge regression on random features of a given spectrum
      -> kernel_data                a kernel on real data: spectrum, coefficients, curves over random subsets
    single_index                    what units see of a teacher of one direction: projections, effective ridge, lazy limit
      -> gaussian_adaptation        weights that adapt to it, one Gaussian: all solutions, stability, free energy, scaling approach
      -> staircase                  density of the overlaps of an erf network, other weights fixed in length or free; phases, samples needed
        -> coexistence              its first-order transition in many dimensions: Maxwell line, spinodal, outliers, instability
      -> overlap_monte_carlo        the overlaps of N neurons sampled, readouts integrated out; beyond the saddle, also ReLU
        -> escape_times             how long the lazy phase lasts: first neuron across the barrier, simulated and predicted
    patch_networks                  linear networks of patches whose filters adapt: residual, critical samples, samples needed
      -> patch_erf                  the same with erf units, mapped onto staircase
      -> patch_posterior            data, density, sampling and measured learnability of networks of patches; uses hmc
        -> patch_gibbs              exact sampling of linear ones
    decimation                      weak modes integrated out into a larger ridge; uses effective_ridge and gp_regression
    ridge_flow                      running ridge, coupling and learnability of a power law; dressed and functional flows
    quartic_loss                    decimation for a quartic loss: one loop, exact per sample, and sampled by hmc
    ising                           strips of the Ising model, phenomenological renormalization, one-loop φ⁴
    ordered                         time-ordered products and exponentials          (Linear learning as a stochastic process)
    data, downloads                 services: bundled real data, loaders of larger sets
    ledger, plot                    services: the reproduction ledger, the figure style
    equivalence                     service of the problem sets: whether two expressions are the same function
    presets, sweep                  services: sizes of the experiments; the same task for many settings, resumed after an interruption
    _checks                         argument checks behind every public function
    _neuron, _tilted                the quadrature behind neuron_gradient and equilibria; densities on a window behind power_laws
    _effective_ridge, _modes        checks of spectra, bounds and equation behind effective_ridge and learning_curve; cuts of decimation
    _adaptation                     free energy and step behind kernel_adaptation and three_layers
    _overlap_density, _coexistence  the convex function behind staircase; the bottom of the action behind coexistence
    _perpendicular, _overlap_moves  averages over the length of weights across the teacher; compiled moves of the overlaps
    _activations                    units of two-layer networks with their slopes, behind random_networks and network_posterior
    _two_points                     the closed form behind the modules on two points, and their checks
    _committee, _frozen             compiled numbers behind committee; the integrator behind structured and site_symmetric

``lib/langevin.py`` is tested by ``tests/test_langevin.py``, and so on.  A leading underscore marks what only the package uses.
Import what you need by name: ``from lib import gaussian``.
"""

__version__ = "0.2.0"
