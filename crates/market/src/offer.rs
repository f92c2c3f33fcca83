//! One offer: what a provider sells, where, at which quotes, and how far each of them can be trusted.

use std::sync::Arc;

use jiff::civil::Date;
use units::{Bytes, UsdPerHour};

/// Days after which a price is called stale.
pub const STALE_AFTER_DAYS: i64 = 90;

macro_rules! word {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),* }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word used in data files, output and JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// Reads the word.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

word!(
    /// What kind of thing the price is for.
    OfferKind {
        /// An instance that can be booked under that name at that price.
        BookableNode = "node",
        /// The list price of one GPU of a larger machine.
        PerGpuList = "per-gpu",
        /// A statistic over many hosts' offers.
        MarketplaceMedian = "median",
        /// The lowest of a range, or the cheapest host seen.
        From = "from",
        /// The rate of a term commitment.
        Reserved = "reserved",
        /// Not a published price: derived, approximate or copied from code of unknown age.
        Estimate = "estimate",
    }
);

word!(
    /// Who stands behind the machine, and how it is delivered.
    Tier {
        /// The provider's own or audited data centre.
        Standard = "standard",
        /// Hosts of other people under the provider's name.
        Community = "community",
        /// A market of hosts; prices move with supply.
        Marketplace = "marketplace",
        /// Containers by the second; no node to log into.
        Serverless = "serverless",
        /// Virtualised GPUs for trying things out.
        Prototyping = "prototyping",
    }
);

impl Tier {
    /// True where the offer is only for those who ask for it with `--tier marketplace`.
    pub fn only_if_asked(self) -> bool {
        !matches!(self, Self::Standard)
    }
}

word!(
    /// Whether the amount is known to be US dollars.
    Currency {
        /// US dollars.
        Verified = "usd",
        /// Stored without a unit by a source whose provider bills in another currency.
        Unverified = "unverified",
    }
);

word!(
    /// Whether the source says which form factor of the GPU it is.
    FormFactor {
        /// The source says so.
        Stated = "stated",
        /// Several variants share the source's name; this one was assumed.
        Assumed = "assumed",
    }
);

word!(
    /// What stands behind a spot price.
    SpotBasis {
        /// The provider quotes it.
        Quoted = "quoted",
        /// The cheapest zone of the region on that day.
        CheapestZone = "cheapest-zone",
        /// Quoted, but seldom to be had.
        Rare = "rare",
        /// Computed from the on-demand price: not a price.
        Estimated = "estimated",
        /// The only price of a service that may stop the work at any time.
        Interruptible = "interruptible",
    }
);

/// Where a price comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PriceOrigin {
    /// A catalog row.
    Catalog,
    /// `--price` replaced the catalog's quote.
    User,
}

impl PriceOrigin {
    /// The word used in output and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::User => "user",
        }
    }
}

/// What makes an offer the same one: provider, instance, GPU, region.
pub(crate) type OfferKey = (Arc<str>, Arc<str>, Arc<str>, Arc<str>);

/// What a provider sells in a place. Prices are for the whole instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Provider id.
    pub provider: Arc<str>,
    /// The provider's name for it: `p5.48xlarge`.
    pub instance: Arc<str>,
    /// GPU id.
    pub gpu: Arc<str>,
    /// GPUs in it; a fraction for a partitioned GPU.
    pub gpu_count: f64,
    /// Virtual CPUs.
    pub vcpus: Option<u32>,
    /// Host memory.
    pub ram: Option<Bytes>,
    /// Region; `global` or blank where the price has none.
    pub region: Arc<str>,
    /// On-demand price of the whole instance; `None` where there is none or it isn't known, never 0.
    pub on_demand: Option<UsdPerHour>,
    /// Spot price of the whole instance.
    pub spot: Option<UsdPerHour>,
    /// What kind of thing the price is for.
    pub kind: OfferKind,
    /// Who stands behind it.
    pub tier: Tier,
    /// Term of a commitment, where the price needs one.
    pub commitment: Option<Arc<str>>,
    /// Whether the amount is known to be US dollars.
    pub currency: Currency,
    /// Whether the GPU's form factor is stated.
    pub form_factor: FormFactor,
    /// What stands behind the spot price.
    pub spot_basis: SpotBasis,
    /// Counts that a per-GPU price is sold in, where the source says; empty where it doesn't.
    pub sold_counts: Vec<u32>,
    /// CPU and RAM cost extra.
    pub extras_billed_apart: bool,
    /// Day of the on-demand price; `None` for a blank or a month alone.
    pub date: Option<Date>,
    /// Day of the spot price.
    pub spot_date: Option<Date>,
    /// The date as the source gives it (`2026-10-10`, `2026-08`, blank).
    pub date_text: Arc<str>,
    /// The spot price's date as the source gives it.
    pub spot_date_text: Arc<str>,
    /// Where the row comes from.
    pub source: Arc<str>,
    /// Remarks.
    pub notes: Arc<str>,
    /// Catalog or the user's `--price`.
    pub origin: PriceOrigin,
}

impl Offer {
    /// The user's own price per GPU, for any count.
    pub(crate) fn of_user(gpu: &str, price: UsdPerHour, note: Arc<str>) -> Self {
        Self {
            provider: crate::market::USER_PROVIDER.into(),
            instance: "--price".into(),
            gpu: gpu.into(),
            gpu_count: 1.0,
            vcpus: None,
            ram: None,
            region: "".into(),
            on_demand: Some(price),
            spot: Some(price),
            kind: OfferKind::PerGpuList,
            tier: Tier::Standard,
            commitment: None,
            currency: Currency::Verified,
            form_factor: FormFactor::Stated,
            spot_basis: SpotBasis::Quoted,
            sold_counts: Vec::new(),
            extras_billed_apart: false,
            date: None,
            spot_date: None,
            date_text: "".into(),
            spot_date_text: "".into(),
            source: "--price".into(),
            notes: note,
            origin: PriceOrigin::User,
        }
    }

    pub(crate) fn key(&self) -> OfferKey {
        (self.provider.clone(), self.instance.clone(), self.gpu.clone(), self.region.clone())
    }

    /// The GPU count as a whole number; `None` for a part of a GPU.
    pub fn whole_gpus(&self) -> Option<u32> {
        (self.gpu_count >= 1.0 && self.gpu_count.fract() == 0.0).then_some(self.gpu_count as u32)
    }

    /// True for a part of a GPU, which never stands for a whole one.
    pub fn is_partitioned(&self) -> bool {
        self.whole_gpus().is_none()
    }

    /// On-demand price of one whole GPU in it.
    pub fn on_demand_per_gpu(&self) -> Option<UsdPerHour> {
        Some(self.on_demand? / f64::from(self.whole_gpus()?))
    }

    /// True where the catalog has spot at the on-demand price or above; a user's one price for both is no such case.
    pub fn no_discount(&self) -> bool {
        self.origin == PriceOrigin::Catalog
            && self.spot.zip(self.on_demand).is_some_and(|(spot, full)| spot.0 >= full.0)
    }

    /// Days since the on-demand price was read; `None` where it is undated. A user's own price is of today.
    pub fn age_days(&self, today: Date) -> Option<i64> {
        match self.origin {
            PriceOrigin::User => Some(0),
            PriceOrigin::Catalog => days_between(self.date, today),
        }
    }

    /// Days since the spot price was read.
    pub fn spot_age_days(&self, today: Date) -> Option<i64> {
        days_between(self.spot_date, today)
    }

    /// True where the on-demand price is undated or older than [`STALE_AFTER_DAYS`].
    pub fn is_stale(&self, today: Date) -> bool {
        self.age_days(today).is_none_or(|days| days > STALE_AFTER_DAYS)
    }

    /// `provider/instance`, as `--on` takes it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.instance)
    }
}

fn days_between(then: Option<Date>, today: Date) -> Option<i64> {
    let then = then?;
    Some((today.duration_since(then).as_hours() / 24).max(0))
}
