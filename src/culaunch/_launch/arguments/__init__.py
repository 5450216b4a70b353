"""Arguments that the driver creates: tensor maps, textures and surfaces."""
